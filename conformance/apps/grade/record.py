"""The result of grading one submission: the stored record from which all outputs are made."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from conformkit.conformance.report.json_text import packaged_schema
from conformkit.conformance.text import one_line, plain, rounded

__all__ = ["SCHEMA", "Advice", "Grade", "Group", "Submission", "SubmissionOutcome", "schema"]

SCHEMA = "conformkit.grade/1"
"""Name and version of the format. New fields keep the number; changing or removing a field raises it."""


class SubmissionOutcome(StrEnum):
    """The outcome of a submission."""

    JUDGED = "judged"
    TIMEOUT = "timeout"
    """The time limit of the whole submission was reached; the report has what was judged before."""
    NOT_LOADED = "not loaded"
    """It could not be imported or bound, or its conform.toml cannot be used."""
    UNREADABLE = "unreadable"
    """Not a readable archive, no Python in it, or no permission."""
    REFUSED = "refused"
    """It breaks a rule that no honest submission breaks: paths that lead out, or an archive bomb."""
    KIT_FAILED = "kit failed"
    """Probably not the submission's fault: the next run grades it again."""


@dataclass(frozen=True, slots=True)
class Submission:
    """Whose it is and where it came from; `id` is safe for file names, `name` is for people."""

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
    """Number of clauses that count for this submission."""
    passed: int
    required: tuple[str, ...] = ()
    """Required clauses that fail, so that the group gives no points."""
    failed: tuple[str, ...] = ()
    """Clauses that count and do not pass, whatever the verdict."""
    why: tuple[str, ...] = ()
    """Why points are lost besides clauses that fail: all or nothing, blocked clauses, crashes."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A use of a forbidden library, or a declaration that could hide a mistake: for a person; it changes no points."""

    kind: str
    """`import` or `call`; `copy` of a function of the kit's reference; `declaration` in conform.toml."""
    what: str
    where: str
    """`file.py:31`, relative to the submission; the key of a declaration."""


@dataclass(frozen=True, slots=True)
class Grade:
    """One submission, graded."""

    submission: Submission
    outcome: SubmissionOutcome
    message: str = ""
    """Why it was not judged, one sentence."""
    points: float = 0.0
    max_points: float = 0.0
    groups: tuple[Group, ...] = ()
    required: tuple[str, ...] = ()
    """Clauses required of the whole submission that fail, so that it gets no points at all."""
    advice: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    """Notes for the reader: what was left out of the archive, which declarations the policy does not allow."""
    hidden: bool = False
    """Whether the draws are hidden: then no output shows drawn numbers or the seed."""
    report: Mapping[str, Any] | None = None
    """The run's report, of schema conformkit.report/1."""
    excluded: tuple[str, ...] = ()
    """Clauses that were excluded from the score because they cannot apply."""
    functions: tuple[str, ...] = ()
    """Digests of its longer functions, the same for equal code with other names."""
    counted: int = 0
    """How many of the notes, the last ones, are about counting points."""
    own_name: str = ""
    """What names the judged code in the folder that was handed in, for `conform run --impl`; empty if unknown."""
    seconds: float = field(default=0.0, compare=False)

    @property
    def libraries(self) -> tuple[Advice, ...]:
        """Uses of forbidden libraries."""
        return tuple(item for item in self.advice if item.kind != "declaration")

    @property
    def declarations(self) -> tuple[Advice, ...]:
        """Declarations that counted and could hide a mistake."""
        return tuple(item for item in self.advice if item.kind == "declaration")

    def as_object(self) -> dict[str, Any]:
        """Return the object that is stored and published."""
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
            "excluded": list(self.excluded),
            "functions": list(self.functions),
            "counted": self.counted,
            "own_name": one_line(self.own_name),
            "report": None if self.report is None else dict(self.report),
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_object(cls, found: Mapping[str, Any]) -> Grade:
        """Return the grade that such an object holds."""
        return cls(
            submission=Submission(**found["submission"]),
            outcome=SubmissionOutcome(found["outcome"]),
            message=found["message"],
            points=_stored_number(found["points"]),
            max_points=_stored_number(found["max_points"]),
            groups=tuple(map(_stored_group, found["groups"])),
            required=tuple(found["required"]),
            advice=tuple(Advice(**item) for item in found["advice"]),
            notes=tuple(found["notes"]),
            hidden=found["hidden"],
            excluded=tuple(found.get("excluded", ())),
            functions=tuple(found.get("functions", ())),
            counted=found.get("counted", 0),
            own_name=found.get("own_name", ""),
            report=found["report"],
            seconds=found["seconds"],
        )

    def as_json(self) -> str:
        """Return the object as one line of JSON."""
        return json.dumps(self.as_object(), ensure_ascii=False, allow_nan=False)


def schema() -> dict[str, Any]:
    """Return the JSON Schema that every grade satisfies; its `report` is described by the schema of reports."""
    return packaged_schema(__package__, "grade")


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
        "why": list(group.why),
    }


def _number(value: float) -> float:
    """Points for JSON, which has no infinity and no NaN; neither is a score."""
    return rounded(value) if math.isfinite(value) else 0.0


def _stored_group(found: Mapping[str, Any]) -> Group:
    numbers = {name: _stored_number(found[name]) for name in ("points", "max_points")}
    lists = {name: tuple(found.get(name, ())) for name in ("required", "failed", "why")}
    return Group(**{**found, **numbers, **lists})


def _stored_number(value: Any) -> float:
    """Return points that were stored. Raises ValueError, TypeError."""
    if not math.isfinite(value):
        raise ValueError(f"{value} is not a number of points")
    return float(value)
