"""What a program gets to know about code that it has judged: an outcome, a score, and the failures as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.json_failures import failure_objects
from conformkit.conformance.report.score import RunOutcome, outcome, score, scores
from conformkit.conformance.report.wording import verdict_line
from conformkit.conformance.text import plain

__all__ = ["Failure", "Judgment", "judgment", "refused"]


@dataclass(frozen=True, slots=True)
class Failure:
    """A clause that does not hold, or that cannot be judged because of another one.

    `what` says what happened, `fix` what to do, `file` and `line` where in the judged code (0 if unknown). `names` are
    the known mistakes that it looks like, the likeliest first: `title`, and how certain each is. `finding` is the
    evidence as numbers: its kind, label, and what was got and expected; None where nothing was measured.
    """

    clause: str
    rule: str
    level: str
    component: str
    verdict: str
    what: str
    fix: str = ""
    file: str = ""
    line: int = 0
    names: Sequence[Mapping[str, Any]] = ()
    finding: Mapping[str, Any] | None = None
    binds: bool = True
    """Whether it alone keeps the code from conforming."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """What is known about code after it was judged. It can be pickled."""

    name: str
    outcome: RunOutcome
    sentence: str
    """The verdict as `conform run` prints it, or why the code could not be judged."""
    score: float = 0.0
    """From 0 to 1: the mean over the parts that were asked for (see `report.score`)."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """The score of each part: a component, a tool, or the clauses about the code as a whole."""
    failures: Sequence[Failure] = ()
    """Binding ones first; if there is none, what is blocked and why."""
    advice: Sequence[str] = ()
    """What to do where the code could not be judged."""
    seed: int = 0
    seconds: float = 0.0
    complete: bool = False
    """Whether all clauses were judged: a limit, or the first failure, may have ended it."""
    cached: bool = False
    """Whether it was found for the same text, options and seed before."""
    report: Report | None = None
    """Everything that was found; None where the code could not be judged."""

    @property
    def conforms(self) -> bool:
        """Whether the code conforms, and enough of it was judged to say so."""
        return self.outcome is RunOutcome.CONFORMS


def judgment(name: str, report: Report, seconds: float) -> Judgment:
    """Return what a report says. The code must still be where it was judged: lines are looked up."""
    return Judgment(
        name=name, outcome=outcome(report), sentence=plain(verdict_line(report)), score=score(report),
        scores=scores(report), failures=_failures(report), seed=report.seed, seconds=seconds, complete=report.complete,
        report=report,
    )  # fmt: skip


def refused(name: str, problem: str, advice: Sequence[str] = (), *, where: str = "", seconds: float = 0.0) -> Judgment:
    """Return the verdict on code that could not be judged at all."""
    at = f" ({plain(where)})" if where else ""
    return Judgment(
        name=name, outcome=RunOutcome.NOT_JUDGED, sentence=f"{plain(problem)}{at}",
        advice=tuple(plain(line) for line in advice), seconds=seconds,
    )  # fmt: skip


def _failures(report: Report) -> tuple[Failure, ...]:
    found = tuple(_failure(each) for each in failure_objects(report))
    if found or report.conforms:
        return found
    return tuple(_blocked(result) for result in report.results if report.breaks(result))


def _failure(told: Mapping[str, Any]) -> Failure:
    return Failure(
        clause=told["id"], rule=told["rule"], level=told["level"], component=told["component"],
        verdict=told["verdict"], what=told["what"], fix=told["fix"], file=told["file"], line=told["line"],
        names=tuple(told["names"]), finding=told["finding"], binds=told["breaks"],
    )  # fmt: skip


def _blocked(result: Result) -> Failure:
    clause = result.clause
    blocked = result.verdict is Verdict.BLOCKED
    why = f"{result.blocked_by} does not pass" if blocked else result.reason
    return Failure(
        clause=clause.id, rule=clause.title, level=clause.level.value, component=clause.component,
        verdict=result.verdict.value, what=plain(why),
        fix=f"first mend {result.blocked_by}" if blocked else "",
    )  # fmt: skip
