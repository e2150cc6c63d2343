"""Texts about a grade that all outputs share."""

from __future__ import annotations

from dataclasses import replace

from conformkit.conformance.apps.grade.record import Grade, Group, SubmissionOutcome
from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.text import count, number

__all__ = ["group_line", "next_line", "outcome_line", "points_line", "report_of", "required_line"]


_NEXT = {
    SubmissionOutcome.NOT_LOADED: "run conform run --impl with the path of your code at home; fix it until it loads",
    SubmissionOutcome.UNREADABLE: "hand in a .py file, or a folder or archive with Python files",
}


def report_of(grade: Grade) -> Report | None:
    """Return the run's report, if there is one; its commands name the code as its author does. Raises NotAReport."""
    return None if grade.report is None else replace(from_object(grade.report), own_name=grade.own_name)


def points_line(points: float, most: float) -> str:
    """Return `7.5 of 10 points`."""
    return f"{number(points)} of {number(most)} {'point' if most == 1 else 'points'}"


def outcome_line(grade: Grade) -> str:
    """Return why a submission was not judged completely; nothing if it was."""
    if grade.outcome is SubmissionOutcome.JUDGED:
        return ""
    return f"{grade.outcome}: {grade.message}" if grade.message else grade.outcome.value


def next_line(grade: Grade) -> str:
    """Return what the author can do if a submission was not judged; nothing if they can't fix it."""
    return _NEXT.get(grade.outcome, "")


def required_line(clauses: tuple[str, ...], what: str) -> str:
    """Return which required clauses fail, and that this costs all points of `what`."""
    if not clauses:
        return ""
    fail = "fails and is" if len(clauses) == 1 else "fail and are"
    return f"{', '.join(clauses)} {fail} required: no points for {what}"


def group_line(group: Group) -> str:
    """Return how many of a group's clauses pass."""
    if not group.clauses:
        return "none of its clauses applies to this submission"
    passes = "passes" if group.clauses == 1 else "pass"
    held = f"{group.passed} of {count(group.clauses, 'clause')} {passes}"
    return "; ".join(line for line in (held, required_line(group.required, "this group"), *group.why) if line)
