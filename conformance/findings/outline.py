"""What may be disclosed of a finding on hidden draws: its kind, and nothing that the code could choose.

A student may submit many times and read every report: a wanted number in it gives away an answer, and an input in it
can be solved at home. Code that has seen the inputs chooses what it returns, where and with which words it raises, and
how far its numbers are off: digits of an input fit into each of these. So an `Outline` is made only here, of the kind
of a finding and of what the kit wants. The type checker refuses any other string in its place, and of a finding without
one only the clause's title is shown.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import NewType

from conformkit.conformance.findings.finding import Finding, Kind

__all__ = [
    "ABSENT",
    "BROKEN",
    "ENDED",
    "LOSSES",
    "NOWHERE",
    "NO_ARRAY",
    "SENSELESS",
    "SILENT",
    "WITHHELD",
    "WRONG",
    "Outline",
    "outline",
    "shape",
    "veiled",
]

Outline = NewType("Outline", str)

WITHHELD = Outline("")
WRONG = Outline("numbers are wrong")
BROKEN = Outline("it does not hold")
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

_OF_KINDS: Mapping[Kind, Outline] = {
    Kind.NUMBERS: WRONG,
    Kind.NOT_FINITE: Outline("some numbers are not finite"),
    Kind.NOT_ZERO: Outline("numbers that must be 0 are not"),
    Kind.UNCHANGED: Outline("two results that must differ are the same"),
    Kind.ACCEPTED: Outline("an input that must be refused was accepted"),
    Kind.NO_ARRAY: NO_ARRAY,
    Kind.NOWHERE: NOWHERE,
    Kind.ENDED: ENDED,
}


def outline(found: Finding) -> Outline:
    """Return what may be told of a finding: not at which setting, how far off, or with which words."""
    match found.kind:
        case Kind.SHAPE if isinstance(found.want, tuple):
            return Outline(f"the shape is different, expected {shape(found.want)}")
        case Kind.FORMAT:
            return Outline(f"the number format is another, expected {found.want}")
        case Kind.RAISED:
            return Outline(f"it raised {found.error if found.error in _ERRORS else 'a custom exception'}")
        case Kind.LOST:
            return LOSSES[found.error]
    return _OF_KINDS.get(found.kind, WITHHELD)


def veiled(found: Finding) -> Finding:
    """Return a finding that holds nothing but what may be told."""
    return Finding(found.kind, outline(found) or BROKEN, verbatim=True)


def shape(extents: Sequence[int]) -> str:
    """Return the extents of an array as NumPy prints them."""
    return f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"
