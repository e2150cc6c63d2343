"""One number for a report, for programs that compare candidates.

    score = mean over parts of (binding clauses that pass / binding clauses that apply)

A part is a component or tool of the profile, or the clauses about the code as a whole. What is blocked, was not run or
is not there has not passed. So mending a mistake never lowers a score, and leaving code out never raises it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.tally import part
from conformkit.conformance.report.wording import is_little, within
from conformkit.spec.components import components_of

__all__ = ["RunOutcome", "outcome", "score", "scores"]


class RunOutcome(StrEnum):
    """What a run says about code, in one word."""

    CONFORMS = "conforms"
    FAILS = "fails"
    NOT_JUDGED = "not judged"
    """It could not be loaded, or too little of it was judged, or time was up, before it could be said to conform."""
    INTERRUPTED = "interrupted"


def outcome(report: Report) -> RunOutcome:
    """Return it for a report."""
    if not report.complete and not report.late:
        return RunOutcome.INTERRUPTED
    red = any(report.breaks(result) and result.verdict.red for result in report.results)
    if (report.unusable and not red) or (report.late and not report.wrong):
        return RunOutcome.NOT_JUDGED
    if not report.conforms:
        return RunOutcome.FAILS
    return RunOutcome.NOT_JUDGED if is_little(report) else RunOutcome.CONFORMS


def score(report: Report) -> float:
    """Return the mean of the parts' scores, from 0 to 1."""
    parts = scores(report)
    return sum(parts.values()) / len(parts) if parts else 0.0


def scores(report: Report) -> Mapping[str, float]:
    """Return the score of each part that is asked for; clauses that a declaration took away have not passed if strict.

    A part that is not there is asked for, unless its profile calls it optional, or it is judged inside a whole.
    """
    left_out = _left_out(report)
    passed: dict[str, list[bool]] = {}
    for result in report.results:
        taken = report.strict and bool(result.exempted_by)
        applies = taken or result.verdict is not Verdict.NOT_APPLICABLE
        if (
            applies
            and not report.unreached(result)
            and report.level.includes(result.clause.level)
            and result.clause.component not in left_out
        ):
            passed.setdefault(part(result.clause), []).append(result.verdict is Verdict.PASS and not taken)
    return {name: sum(each) / len(each) for name, each in passed.items()}


def _left_out(report: Report) -> frozenset[str]:
    """Return the components of which nothing is there, and need not be."""
    if report.only:
        return frozenset()
    known = [part for name in report.profile.split(",") for part in components_of(name).values()]
    free = {part.name for part in known if not part.required} | within(report)
    there = {r.clause.component for r in report.results if r.verdict is not Verdict.NOT_IMPLEMENTED}
    return frozenset(free - there - {*report.skipped, *report.unusable, *report.missing})
