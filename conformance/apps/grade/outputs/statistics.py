"""Figures of a class: scores, groups, the clauses that fail most, the most common mistakes."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from conformkit.conformance.apps.grade.outputs.wording import report_of
from conformkit.conformance.apps.grade.record import Grade, SubmissionOutcome
from conformkit.conformance.defects import defects
from conformkit.conformance.engine.results import Certainty, LooksLike, Report, Verdict

__all__ = ["Bin", "ClauseFigures", "Figures", "GroupFigures", "MistakeFigures", "figures"]

BINS = 10
MOST = 25
"""Maximum number of clauses and of mistakes to list."""
_ALTERNATIVES = 2
"""How many mistakes are named that may be the same cause."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Scores from `low` to `high`, in percent of the possible points; the last bin includes its upper end."""

    low: int
    high: int
    count: int


@dataclass(frozen=True, slots=True)
class GroupFigures:
    """The results of a group of clauses: the mean share of its points, and how many got all or nothing."""

    title: str
    points: float
    mean: float
    whole: int
    nothing: int


@dataclass(frozen=True, slots=True)
class ClauseFigures:
    """How often a clause is red, blocked or missing, and how many submissions were judged on it."""

    id: str
    title: str
    red: int
    blocked: int
    missing: int
    judged: int


@dataclass(frozen=True, slots=True)
class MistakeFigures:
    """A known mistake: in how many submissions a failure looks like it, surely or as one of several."""

    title: str
    sure: int
    possible: int


@dataclass(frozen=True, slots=True)
class Figures:
    """All of them."""

    outcomes: dict[str, int]
    median: float
    mean: float
    lowest: float
    highest: float
    bins: tuple[Bin, ...]
    groups: tuple[GroupFigures, ...]
    clauses: tuple[ClauseFigures, ...]
    mistakes: tuple[MistakeFigures, ...]


def figures(grades: Sequence[Grade]) -> Figures:
    """Return the figures of a class; shares of points are over all submissions, clauses over those with a report."""
    shares = [grade.points / grade.max_points for grade in grades if grade.max_points]
    reports = [report for grade in grades if (report := report_of(grade)) is not None]
    counts = Counter(grade.outcome for grade in grades)
    return Figures(
        outcomes={outcome.value: counts[outcome] for outcome in SubmissionOutcome if counts[outcome]},
        median=statistics.median(shares) if shares else 0.0,
        mean=statistics.fmean(shares) if shares else 0.0,
        lowest=min(shares, default=0.0),
        highest=max(shares, default=0.0),
        bins=tuple(_bins(shares)),
        groups=tuple(_groups(grades)),
        clauses=tuple(_clauses(reports)),
        mistakes=tuple(_mistakes(reports)),
    )


def _bins(shares: Iterable[float]) -> Iterable[Bin]:
    width = 100 // BINS
    counts = Counter(min(int(share * BINS + 1e-9), BINS - 1) for share in shares)
    return (Bin(width * number, width * (number + 1), counts[number]) for number in range(BINS))


def _groups(grades: Sequence[Grade]) -> Iterable[GroupFigures]:
    names = dict.fromkeys(group.name for grade in grades for group in grade.groups)
    for name in names:
        found = [group for grade in grades for group in grade.groups if group.name == name and group.max_points]
        shares = [group.points / group.max_points for group in found]
        if shares:
            most = max(group.max_points for group in found)
            mean = statistics.fmean(shares)
            whole = sum(group.points == group.max_points and not group.failed for group in found)  # points are rounded
            yield GroupFigures(found[0].title or name, most, mean, whole, shares.count(0.0))


def _clauses(reports: Sequence[Report]) -> list[ClauseFigures]:
    titles: dict[str, str] = {}
    counts: dict[str, Counter[str]] = {}
    for result in (result for report in reports for result in report.results):
        if result.verdict is Verdict.NOT_APPLICABLE:
            continue
        titles[result.clause.id] = result.clause.title
        counts.setdefault(result.clause.id, Counter())["red" if result.verdict.red else result.verdict.value] += 1
    found = [
        ClauseFigures(
            name, titles[name], many["red"], many["blocked"], many["not implemented"] + many["not run"], many.total()
        )
        for name, many in counts.items()
    ]
    return sorted((c for c in found if c.red), key=lambda c: -c.red)[:MOST]


def _mistakes(reports: Sequence[Report]) -> list[MistakeFigures]:
    sure, possible = Counter[str](), Counter[str]()
    for report in reports:
        causes = [_cause(result.looks_like) for result in report.results if result.looks_like]
        named = {title for title, certainty in causes if certainty is Certainty.EXACT}
        sure.update(named)
        possible.update({title for title, _ in causes} - named)
    titles = sorted({*sure, *possible}, key=lambda title: (-sure[title], -possible[title], title))
    return [MistakeFigures(title, sure[title], possible[title]) for title in titles[:MOST]]


def _cause(likes: Sequence[LooksLike]) -> tuple[str, Certainty]:
    """Return the one cause of a failure: mistakes that are equally sure are alternatives, not several of a person."""
    first = likes[0]
    titles = sorted({_title(like) for like in likes if like.certainty is first.certainty})
    return " or ".join(titles[:_ALTERNATIVES]) + (", or another" if titles[_ALTERNATIVES:] else ""), first.certainty


def _title(like: LooksLike) -> str:
    """Return the name of a mistake; if students see only its symptom, the instructor still reads its name."""
    return like.title or _by_symptom().get(like.hint.symptom) or like.hint.symptom


@cache
def _by_symptom() -> dict[str, str]:
    """Return titles by symptom, if no other mistake has the same symptom."""
    symptoms = Counter(defect.hint.symptom for defect in defects().values())
    return {d.hint.symptom: d.title for d in defects().values() if symptoms[d.hint.symptom] == 1}
