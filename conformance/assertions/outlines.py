"""What may be disclosed of a failure on hidden draws: its kind, and nothing that the code could choose.

A student may submit many times and read every report: a wanted number in it gives away an answer, and an input in it
can be solved at home. Code that has seen the inputs chooses what it returns, where and with which words it raises, and
how far its numbers are off: digits of an input fit into each of these. So an `Outline` is made only here, of the kind
of a failure and of what the kit wants. The type checker refuses any other string in its place, and of a failure without
one only the clause's title is shown.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import NewType

__all__ = [
    "ABSENT",
    "ACCEPTED",
    "BROKEN",
    "ENDED",
    "LOSSES",
    "NOT_FINITE",
    "NOT_ZERO",
    "NOWHERE",
    "NO_ARRAY",
    "SENSELESS",
    "SILENT",
    "UNCHANGED",
    "WITHHELD",
    "WRONG",
    "Outline",
    "formats",
    "raised",
    "shapes",
]

Outline = NewType("Outline", str)

WITHHELD = Outline("")
WRONG = Outline("numbers are wrong")
BROKEN = Outline("it does not hold")
NOT_FINITE = Outline("some numbers are not finite")
NOT_ZERO = Outline("numbers that must be 0 are not")
UNCHANGED = Outline("two results that must differ are the same")
ACCEPTED = Outline("an input that must be refused was accepted")
ENDED = Outline("it tried to exit the process")
NO_ARRAY = Outline("it did not return an array")
NOWHERE = Outline("its weights are not where they were at first")
SENSELESS = Outline("the test cannot interpret the result")
SILENT = Outline("it does not apply to this implementation")
ABSENT = Outline("it needs a component that is not exported")
LOSSES: Mapping[str, Outline] = {
    "timeout": Outline("it exceeded the time limit"),
    "signal": Outline("it crashed"),
    "exit": Outline("it ended its process"),
    "memory": Outline("it exceeded the memory limit"),
    "processes": Outline("it exceeded the limit on processes"),
    "output": Outline("it exceeded the limit on output"),
    "protocol": Outline("it broke the connection to its process"),
}
"""How a worker was lost."""

_ERRORS = frozenset(
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
) | {"AxisError", "LinAlgError", "OutOfMemoryError"}


def shapes(want: Sequence[int]) -> Outline:
    """Describe a wrong shape by the one that is wanted."""
    return Outline(f"the shape is different, want {_shape(want)}")


def formats(want: str) -> Outline:
    """Describe a wrong number format by the one that is wanted."""
    return Outline(f"the number format is another, want {want}")


def raised(error: str) -> Outline:
    """Describe an exception by its type, if that is well known."""
    return Outline(f"it raised {error if error in _ERRORS else 'a custom exception'}")


def _shape(shape: Sequence[int]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
