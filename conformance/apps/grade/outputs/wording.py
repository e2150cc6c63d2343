"""What every output says of one grade."""

from __future__ import annotations

from conformkit.conformance.apps.grade.record import Grade, Group, Outcome
from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.text import count, number

__all__ = ["group_line", "next_line", "outcome_line", "points_line", "report_of", "required_line"]


_NEXT = {
    Outcome.NOT_LOADED: "conform run --impl, with the path of your code, says the same at home; mend it until it loads",
    Outcome.UNREADABLE: "hand in a .py file, or a folder or archive that holds Python files",
}


def report_of(grade: Grade) -> Report | None:
    """Return the run's report, where there is one. Raises NotAReport."""
    return None if grade.report is None else from_object(grade.report)


def points_line(points: float, most: float) -> str:
    """Return `7.5 of 10 points`."""
    return f"{number(points)} of {number(most)} {'point' if most == 1 else 'points'}"


def outcome_line(grade: Grade) -> str:
    """Return why a submission was not judged to the end; nothing where it was."""
    if grade.outcome is Outcome.JUDGED:
        return ""
    return f"{grade.outcome}: {grade.message}" if grade.message else grade.outcome.value


def next_line(grade: Grade) -> str:
    """Return what its author can do where a submission was not judged; nothing where that is not theirs to mend."""
    return _NEXT.get(grade.outcome, "")


def required_line(clauses: tuple[str, ...], what: str) -> str:
    """Return which required clauses do not hold, and that this costs all points of `what`."""
    if not clauses:
        return ""
    hold = "does not hold, and is" if len(clauses) == 1 else "do not hold, and are"
    return f"{', '.join(clauses)} {hold} required: no points for {what}"


def group_line(group: Group) -> str:
    """Return how many of a group's clauses hold."""
    if not group.clauses:
        return "none of its clauses applies to this submission"
    held = f"{group.passed} of {count(group.clauses, 'clause')} hold"
    return "; ".join(line for line in (held, required_line(group.required, "this group")) if line)
