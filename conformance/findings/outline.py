"""Sentences that name no number: of ways to end, and what may be disclosed on hidden draws.

A student may submit many times and read every report: a wanted number in it gives away an answer, and an input in it
can be solved at home. Code that has seen the inputs chooses what it returns, where and with which words it raises, and
how far its numbers are off: digits of an input fit into each of these. So an `Outline` is made only here, and what is
told of a failure depends on its verdict alone (redaction.py). The type checker refuses any other string in its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NewType

__all__ = [
    "ABSENT",
    "BROKEN",
    "ENDED",
    "LATE",
    "LOSSES",
    "LOST",
    "NOWHERE",
    "NO_ARRAY",
    "RAISED",
    "SENSELESS",
    "SILENT",
    "WITHHELD",
    "Outline",
    "shape",
]

Outline = NewType("Outline", str)

WITHHELD = Outline("")
BROKEN = Outline("it does not hold")
RAISED = Outline("it raised an exception, or returned no array")
LOST = Outline("its process ended, or exceeded a limit")
LATE = Outline("it exceeded the time limit")
ENDED = Outline("it tried to exit the process")
NO_ARRAY = Outline("it did not return an array")
NOWHERE = Outline("its weights are not where they were at first")
SENSELESS = Outline("the test cannot interpret the result")
SILENT = Outline("it does not apply to this implementation")
ABSENT = Outline("it needs a component that is not exported")
LOSSES: Mapping[str, Outline] = {
    "timeout": LATE,
    "signal": Outline("it crashed"),
    "exit": Outline("it ended its process"),
    "memory": Outline("it exceeded the memory limit"),
    "processes": Outline("it exceeded the limit on processes"),
    "output": Outline("it exceeded the limit on output"),
    "protocol": Outline("it broke the connection to its process"),
}
"""How a worker was lost."""


def shape(extents: Sequence[int]) -> str:
    """Return the extents of an array as NumPy prints them."""
    return f"({', '.join(map(str, extents))}{',' if len(extents) == 1 else ''})"
