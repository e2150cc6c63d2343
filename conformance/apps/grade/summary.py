"""The text after grading a class: what needs attention, the distribution of points, where the results are."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from conformkit.conformance.apps.grade.grade import LOGS, GradeRequest, Summary
from conformkit.conformance.apps.grade.progress import points
from conformkit.conformance.apps.grade.record import Grade, SubmissionOutcome
from conformkit.conformance.text import count, one_line

__all__ = ["write_summary"]

_LISTED = 12


def write_summary(
    summary: Summary, request: GradeRequest, page: Console, *, verbose: bool = False, quiet: bool = False
) -> None:
    """Print it; the last line says how many are graded and where."""
    if not quiet:
        for line in _lines(summary, verbose=verbose):
            page.print(Text(line))
    page.print(Text(_last(summary, request)))


def _lines(summary: Summary, *, verbose: bool) -> Iterator[str]:
    if verbose:
        yield from (f"{one_line(grade.submission.name, 60)}: {points(grade)}" for grade in summary.grades)
        yield ""
    yield from _listed(
        "needs attention", [_trouble(g) for g in summary.grades if g.outcome is not SubmissionOutcome.JUDGED]
    )
    yield from _listed("forbidden", [_advised(grade) for grade in summary.grades if grade.libraries])
    yield from _listed("needs a look", [_declared(grade) for grade in summary.grades if grade.declarations])
    if summary.aside:
        yield from _listed("ignored", [one_line(name, 60) for name in summary.aside])
    yield from _listed("not on the roster", [one_line(name, 60) for name in summary.strangers])
    if summary.gone:
        yield from _listed("graded earlier, not in the folder now", list(summary.gone))
    shares = [g.points / g.max_points for g in summary.grades if g.max_points]
    if shares:
        low, high = min(shares), max(shares)
        yield f"points: median {statistics.median(shares):.0%}, from {low:.0%} to {high:.0%}"


def _listed(what: str, lines: Sequence[str]) -> Iterator[str]:
    yield from (f"{what}: {line}" for line in lines[:_LISTED])
    if len(lines) > _LISTED:
        yield f"{what}: {len(lines) - _LISTED} more"


def _trouble(grade: Grade) -> str:
    return f"{one_line(grade.submission.name, 60)}, {grade.outcome}: {one_line(grade.message, 200)}"


def _advised(grade: Grade) -> str:
    first = grade.libraries[0]
    more = f" and {len(grade.libraries) - 1} more" if len(grade.libraries) > 1 else ""
    use = f"{one_line(first.what)} ({one_line(first.where)}){more}"
    return f"{one_line(grade.submission.name, 60)} may use {use}; check it yourself"


def _declared(grade: Grade) -> str:
    first, more = grade.declarations[0], len(grade.declarations) - 1
    sentence = f"{one_line(first.what, 120)}{f' and {more} more' if more else ''}"
    return f"{one_line(grade.submission.name, 60)} declares: {sentence}"


def _last(summary: Summary, request: GradeRequest) -> str:
    outcomes = ", ".join(f"{number} {name}" for name, number in sorted(summary.outcomes.items()))
    fresh = "" if summary.fresh == len(summary.grades) else f", {summary.fresh} of them now"
    return (
        f"{count(len(summary.grades), 'submission')} graded{fresh} ({outcomes}); results in {request.out}, "
        f"a log for each in {request.out / LOGS}"
    )
