"""Grades that tests render: one that lost points, one that was not judged, one in which everything is hostile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from conformkit.conformance.apps.grade.record import Advice, Grade, Group, Submission, SubmissionOutcome
from conformkit.conformance.defects import defects
from conformkit.conformance.engine.results import Certainty, LooksLike, Report, Result, Verdict
from conformkit.conformance.findings.finding import stated
from conformkit.conformance.report.json_report import as_object
from conformkit.spec.clauses import Level, clauses
from tests.report.samples import HOSTILE


def likeness(certainty: Certainty = Certainty.EXACT, name: str = "sdpa-no-scale") -> LooksLike:
    known = defects()[name]
    return LooksLike(known.id, known.title, certainty, (), known.hint)


def report(*results: Result, name: str = "ada", **changes: Any) -> dict[str, Any]:
    """A stored report of these results."""
    facts: dict[str, Any] = {
        "implementation": name, "location": "solution.py", "framework": "torch", "profile": "core",
        "level": Level.MUST, "seed": 7, "isolation": "sandbox", "device": "cpu", "variant": {}, "complete": True,
        "hints": 1, "seconds": 2.0,
    }  # fmt: skip
    return as_object(Report(results=list(results), **{**facts, **changes}))


def result(clause_id: str = "SDPA-SCALE", verdict: Verdict = Verdict.PASS, **changes: Any) -> Result:
    if "message" in changes:
        changes["finding"] = stated(changes.pop("message"), *changes.pop("details", ()))
    return Result(clauses()[clause_id], verdict, **changes)


GROUPS = (
    Group("attention", "Attention", 5.0, 10.0, 2, 1, (), ("SDPA-SCALE",)),
    Group("heads", "Several heads", 2.5, 2.5, 3, 3),
)


def graded(name: str = "ada", number: int = 1, **changes: Any) -> Grade:
    """A grade: 7.5 of 12.5 points, one clause that fails; every field can be given."""
    stored = report(
        result("SDPA-OUT-SHAPE"),
        result("SDPA-SCALE", Verdict.FAIL, message="numbers are wrong", looks_like=(likeness(),)),
        name=name,
    )
    grade = Grade(
        submission=Submission(f"s{number}", name, f"{name}.zip", f"{number:064x}"), outcome=SubmissionOutcome.JUDGED,
        points=7.5, max_points=12.5, groups=GROUPS, hidden=True, report=stored, seconds=2.5,
    )  # fmt: skip
    return replace(grade, **changes)


def lost() -> Grade:
    """A submission that could not be judged."""
    groups = tuple(replace(group, points=0.0, passed=0, failed=("SDPA-SCALE",)) for group in GROUPS)
    message = "importing it raised ImportError: No module named 'numpyy'"
    return graded(
        "bob", 2, outcome=SubmissionOutcome.NOT_LOADED, message=message, points=0.0, report=None, groups=groups
    )


def hostile() -> Grade:
    """A grade in which everything that a student controls is hostile."""
    stored = report(
        result("SDPA-SCALE", Verdict.ERROR, message=HOSTILE, details=(HOSTILE,), output=HOSTILE),
        result("SDPA-OUT-SHAPE", Verdict.NOT_RUN, reason=HOSTILE),
        name=HOSTILE, notes=[HOSTILE], location=HOSTILE,
    )  # fmt: skip
    return graded(
        HOSTILE, 3, outcome=SubmissionOutcome.TIMEOUT, message=HOSTILE, notes=(HOSTILE,), report=stored,
        advice=(Advice("call", HOSTILE, HOSTILE),),
    )  # fmt: skip
