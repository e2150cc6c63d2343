"""What grading one submission gives: the record that is stored, and that all outputs are made of."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from typing import Any

from conformkit.conformance.text import one_line, plain, rounded

__all__ = ["SCHEMA", "Advice", "Grade", "Group", "Outcome", "Submission", "schema"]

SCHEMA = "conformkit.grade/1"
"""Name and version of the form. A field may be added under the same number; one that changes or goes away raises it."""


class Outcome(StrEnum):
    """What became of a submission."""

    JUDGED = "judged"
    TIMEOUT = "timeout"
    """The time for the whole submission was up; what was judged until then is in the report."""
    NOT_LOADED = "not loaded"
    """It could not be imported or bound, or its conform.toml cannot be used."""
    UNREADABLE = "unreadable"
    """No archive that can be read, no Python in it, no permission."""
    REFUSED = "refused"
    """It breaks a rule that no honest submission breaks: paths that lead out, an archive that is a bomb."""
    KIT_FAILED = "kit failed"
    """Not the submission's fault as far as anybody knows: it is graded anew by the next run."""


@dataclass(frozen=True, slots=True)
class Submission:
    """Whose it is and where it came from; `id` is fit for file names, `name` is for people."""

    id: str
    name: str
    source: str
    """Its path, relative to the folder of submissions."""
    digest: str
    """SHA-256 of its content."""


@dataclass(frozen=True, slots=True)
class Group:
    """The points of one group of clauses."""

    name: str
    title: str
    points: float
    max_points: float
    clauses: int
    """How many count for this submission."""
    passed: int
    required: tuple[str, ...] = ()
    """Required clauses that do not hold, for which the group gives no points."""
    failed: tuple[str, ...] = ()
    """Clauses that count and do not hold, whatever the verdict."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A use of a library that the policy forbids, seen in the source: for a person to look at, no change of points."""

    kind: str
    """`import` or `call`; `copy` of a function of the kit's reference."""
    what: str
    where: str
    """`file.py:31`, relative to the submission."""


@dataclass(frozen=True, slots=True)
class Grade:
    """One submission, graded."""

    submission: Submission
    outcome: Outcome
    message: str = ""
    """Why it was not judged, one sentence."""
    points: float = 0.0
    max_points: float = 0.0
    groups: tuple[Group, ...] = ()
    required: tuple[str, ...] = ()
    """Clauses required of the whole submission that do not hold, for which it gets no points at all."""
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    """What the reader should know: what was left out of the archive, which declarations the policy does not allow."""
    hidden: bool = False
    """Whether the draws are secret: then no output shows drawn numbers or the seed."""
    report: Mapping[str, Any] | None = None
    """The run's report, of schema conformkit.report/1."""
    seconds: float = field(default=0.0, compare=False)

    def as_object(self) -> dict[str, Any]:
        """Return the form that is stored and published."""
        return {
            "schema": SCHEMA,
            "submission": {
                "id": self.submission.id,
                "name": one_line(self.submission.name),
                "source": one_line(self.submission.source),
                "digest": self.submission.digest,
            },
            "outcome": self.outcome.value,
            "message": plain(self.message),
            "points": _number(self.points),
            "max_points": _number(self.max_points),
            "groups": [_group(group) for group in self.groups],
            "required": list(self.required),
            "advice": [{"kind": a.kind, "what": one_line(a.what), "where": one_line(a.where)} for a in self.advice],
            "notes": [plain(note) for note in self.notes],
            "hidden": self.hidden,
            "report": None if self.report is None else dict(self.report),
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> Grade:
        """Return the grade that an object of this form stands for."""
        return cls(
            submission=Submission(**found["submission"]),
            outcome=Outcome(found["outcome"]),
            message=found["message"],
            points=_stored_number(found["points"]),
            max_points=_stored_number(found["max_points"]),
            groups=tuple(map(_stored_group, found["groups"])),
            required=tuple(found["required"]),
            advice=tuple(Advice(**item) for item in found["advice"]),
            notes=tuple(found["notes"]),
            hidden=found["hidden"],
            report=found["report"],
            seconds=found["seconds"],
        )

    def as_json(self) -> str:
        """Return the object as one line of JSON."""
        return json.dumps(self.as_object(), ensure_ascii=False, allow_nan=False)


def schema() -> dict[str, Any]:
    """Return the JSON Schema that every grade satisfies; its `report` is described by the schema of reports."""
    text = files(__package__).joinpath("grade.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def _group(group: Group) -> dict[str, Any]:
    return {
        "name": group.name,
        "title": group.title,
        "points": _number(group.points),
        "max_points": _number(group.max_points),
        "clauses": group.clauses,
        "passed": group.passed,
        "required": list(group.required),
        "failed": list(group.failed),
    }


def _number(value: float) -> float:
    """Points, as they are told: JSON knows no infinity and no NaN, and neither is a score."""
    return rounded(value) if math.isfinite(value) else 0.0


def _stored_group(found: Mapping[str, Any]) -> Group:
    numbers = {name: _stored_number(found[name]) for name in ("points", "max_points")}
    return Group(**{**found, **numbers, "required": tuple(found["required"]), "failed": tuple(found["failed"])})


def _stored_number(value: Any) -> float:
    """Return points that were stored. Raises ValueError, TypeError."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is no number of points")
    return float(value)
