"""A finding: what a failed check saw, before anybody has put it into words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from conformkit.conformance.findings.relation import How, Relation
from conformkit.conformance.findings.setting import Setting
from conformkit.conformance.findings.threshold import Threshold

__all__ = ["FactValue", "Finding", "Kind", "stated"]

FactValue = bool | int | float | complex | str | tuple[int, ...] | None
"""One number, the extents of an array, or the name of a number format."""


class Kind(StrEnum):
    """What went wrong."""

    NUMBERS = "numbers"
    """Numbers differ from those wanted."""
    SHAPE = "shape"
    FORMAT = "format"
    """The number format is another one."""
    NOT_FINITE = "not finite"
    NOT_ZERO = "not zero"
    UNCHANGED = "unchanged"
    """Two results that must differ are the same."""
    NO_EFFECT = "no effect"
    """An output does not depend on what it must depend on."""
    ACCEPTED = "accepted"
    """What must be refused was accepted."""
    UNTRUE = "untrue"
    """Something else does not hold: the label says what."""
    RAISED = "raised"
    """The code raised an exception."""
    NO_ARRAY = "no array"
    """The code returned something that is not an array."""
    NOWHERE = "nowhere"
    """The weights are not where they were at first."""
    ENDED = "ended"
    """The code tried to end the process."""
    LOST = "lost"
    """The process was lost; `error` says how."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. Numbers are single ones: the worst entry, and how many others are wrong.

    Shapes: `at` is the index of the entry in an array of `of` entries, `got` and `want` its values there; of a finding
    about shapes, both are tuples of extents. Units: `worst` and `allowed` are absolute errors, `tolerance` is relative.
    """

    kind: Kind
    label: str
    """What was looked at: `output`; where something is simply untrue, what is wrong."""
    got: FactValue = None
    want: FactValue = None
    at: tuple[int, ...] = ()
    bad: int = 0
    of: int = 0
    worst: float | None = None
    allowed: float | None = None
    tolerance: float | None = None
    """None where numbers had to be equal."""
    form: str = ""
    """The number format in which it was compared."""
    rows: tuple[int, ...] = ()
    """The rows that are not finite as a whole, where others are finite."""
    notes: tuple[str, ...] = ()
    """Further lines for the reader."""
    setting: Setting | None = None
    sampled: bool = False
    """Whether its numbers are shares or means of random draws, which are never quite the same."""
    own_draws: bool = False
    """Whether its numbers come from the code's own initialization."""
    threshold: Threshold | None = None
    error: str = ""
    """The type of an exception, or how the process was lost."""
    said: str = ""
    """What the exception says, in the words of the code or of a library."""
    verbatim: bool = False
    """Whether the label is the whole message: that of a stored report, or of one with hidden draws."""
    relation: Relation | None = None
    """How the result is related to the wanted one, where that was found."""

    @property
    def ratio(self) -> float | None:
        """The worst error in units of the allowed one; None where nothing is allowed."""
        return self.worst / self.allowed if self.worst is not None and self.allowed else None

    @property
    def about_numbers(self) -> bool:
        """Whether it compared numbers."""
        return self.kind in {Kind.NUMBERS, Kind.NOT_ZERO, Kind.UNCHANGED, Kind.NO_EFFECT}

    @property
    def explained(self) -> bool:
        """Whether a relation says what is wrong, not only where."""
        return self.relation is not None and self.relation.how is not How.PLACE

    def mentions(self, name: str) -> bool:
        """Whether its label, its notes or its setting name this: a clause about all components says which one fails."""
        texts = (self.label, *self.notes, str(self.setting or ""))
        return any(re.search(rf"\b{re.escape(name)}\b", text) for text in texts)

    def sizes(self) -> Mapping[str, object]:
        """Return the setting by name."""
        return self.setting.values if self.setting is not None else {}

    def noting(self, *lines: str) -> Finding:
        """Return the same finding with further lines."""
        return replace(self, notes=(*self.notes, *lines))


def stated(what: str, *notes: str) -> Finding:
    """Return that something is wrong which no comparison of arrays found."""
    return Finding(Kind.UNTRUE, what, notes=notes)
