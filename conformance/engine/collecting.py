"""Results as they arrive, and the final report made from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from conformkit.conformance.engine.redaction import redacted, veiled
from conformkit.conformance.engine.results import Causes, Report, Result, Verdict
from conformkit.spec.clauses import Clause
from conformkit.spec.clauses import clause as find

__all__ = ["Collector", "FirstFailure", "Progress"]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run; `last` is the newest result, if any."""

    done: int
    total: int
    clause_id: str
    title: str
    last: Result | None


class FirstFailure(Exception):
    """A result that ends the run, as was asked for."""


class Collector:
    """Collects results in any order, reports progress, and makes the final report.

    `chosen` are the clauses in the order of the law, `turns` the same clauses in the order of judging; a result for
    which `stops` holds raises FirstFailure.
    """

    def __init__(
        self, chosen: Sequence[Clause], turns: Sequence[Clause],
        on_progress: Callable[[Progress], None] | None, *, hidden: bool,
    ) -> None:  # fmt: skip
        self._chosen, self._turns, self._on_progress, self._hidden = chosen, turns, on_progress, hidden
        self._results: dict[str, Result] = {}
        self._causes = Causes()
        self._remarks: list[str] = []
        self.stops: Callable[[Result], bool] | None = None
        self._tell(None)

    def add(self, result: Result) -> None:
        """Add a result, and report which clause is next."""
        self._results[result.clause.id] = result
        self._tell(result)
        if self.stops is not None and self.stops(result):
            raise FirstFailure

    def amend(self, results: Sequence[Result]) -> None:
        """Replace results by what is known now; this is no progress."""
        known = {result.clause.id: result for result in results}
        self._results |= known
        explained = [known.get(result.clause.id, result) for result in self._causes.results]
        self._causes = replace(self._causes, results=explained)

    def explained(self) -> list[Result]:
        """Return the results so far, with known mistakes where these have been looked for."""
        return list(self._causes.results or self.in_order())

    def add_not_run(self, reason: str) -> None:
        """Mark every clause that has no result yet as not run."""
        for clause in self._chosen:
            if clause.id not in self._results:
                self._results[clause.id] = Result(clause, Verdict.NOT_RUN, reason=reason, tried=False)

    def explain(self, causes: Causes) -> None:
        """Set the causes of failures known so far."""
        self._causes = causes

    def remark(self, note: str) -> None:
        """Add a note for the reader."""
        self._remarks.append(note)

    def blocking(self) -> list[Clause]:
        """Return the clauses that were not asked for and because of whose failure others are blocked."""
        blocked = {result.blocked_by for result in self._results.values() if result.verdict is Verdict.BLOCKED}
        return [find(name) for name in sorted(blocked - self._results.keys() - {""})]

    def widen(self, more: Sequence[Clause]) -> None:
        """Take further clauses in, before those asked for: their failures are why others are blocked."""
        self._chosen, self._turns = [*more, *self._chosen], [*self._turns, *more]

    def in_order(self) -> list[Result]:
        """Return the results so far, in the order of the law."""
        return [self._results[clause.id] for clause in self._chosen if clause.id in self._results]

    def finish(self, begun: Report, *, complete: bool, seconds: float) -> Report:
        """Return the report of a finished run, without hidden numbers.

        `begun` says what was judged and how.
        """
        causes = self._causes
        # not where draws are hidden: the implementation has a say in them
        remarks = [] if begun.hidden else [result.remark for result in self.in_order() if result.remark]
        report = replace(
            begun, results=self.explained(), undeclared=causes.undeclared, parts=causes.parts,
            complete=complete, seconds=seconds,
            notes=[*begun.notes, *remarks, *self._remarks],
        )  # fmt: skip
        return redacted(report) if report.hidden else report

    def _tell(self, last: Result | None) -> None:
        if self._on_progress is None:
            return
        clause = next((clause for clause in self._turns if clause.id not in self._results), None)
        named = (clause.id, clause.title) if clause else ("", "")
        shown = veiled(last) if last is not None and self._hidden else last
        self._on_progress(Progress(len(self._results), len(self._turns), *named, shown))
