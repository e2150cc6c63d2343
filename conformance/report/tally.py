"""How far each part is: how many of its binding clauses pass, and how many passed in the run before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.remembered import keep, recall
from conformkit.spec.clauses import Clause

__all__ = ["Tally", "last_time", "part", "remember", "tally"]

_WHOLE = "whole-model clauses"
_KIND = "passed"


@dataclass(frozen=True, slots=True)
class Tally:
    """A component or tool, how many of its clauses are asked for, and how many of these pass."""

    name: str
    passed: int
    asked: int


def tally(report: Report) -> list[Tally]:
    """Return the parts in the order of the law; clauses that do not bind or do not apply are not counted."""
    asked: dict[str, list[bool]] = {}
    for result in report.results:
        binds = report.level.includes(result.clause.level) and not report.unreached(result)
        if binds and result.verdict is not Verdict.NOT_APPLICABLE:
            asked.setdefault(part(result.clause), []).append(result.verdict is Verdict.PASS)
    return [Tally(name, sum(passed), len(passed)) for name, passed in asked.items()]


def part(clause: Clause) -> str:
    """Return which part a clause is about: a component, a tool, or the code as a whole."""
    return _WHOLE if clause.component == "all" else clause.component


def last_time(report: Report) -> Mapping[str, int]:
    """Return how many clauses of each part passed when the same was asked of the same code; empty if unknown."""
    found = recall(_KIND, _about(report))
    if not isinstance(found, dict):
        return {}
    return {str(name): passed for name, passed in found.items() if isinstance(passed, int)}


def remember(report: Report) -> None:
    """Store the counts; if they can't be written, nothing is."""
    keep(_KIND, _about(report), {part.name: part.passed for part in tally(report)})


def _about(report: Report) -> list[str]:
    asked = [report.location, report.implementation, report.profile, report.level.value]
    return [*asked, *report.only, *report.without]
