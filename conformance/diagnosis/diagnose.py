"""From red clauses to the mistake behind them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

from conformkit.conformance.defects import Defect
from conformkit.conformance.defects.patching import PatchError
from conformkit.conformance.diagnosis.likeness import numbers_in, same_failure
from conformkit.conformance.diagnosis.suspects import suspects
from conformkit.conformance.judge import Judge
from conformkit.conformance.results import Certainty, LooksLike, Result
from conformkit.conformance.runner import LoadFailure
from conformkit.spec.clauses import Level
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import Variant

__all__ = ["diagnose"]

Witness = Callable[[Sequence[Defect], Collection[str]], AbstractContextManager[Judge]]
"""Judges the reference with some defects in it, as far as some components go."""

_MOST = 12
"""So many defects are tried alone,"""
_PAIRED = 4
"""and so many of those that explain something with each other."""
_AT_ONCE = 2
"""So many references with defects run side by side."""


def diagnose(results: Sequence[Result], variant: Variant, witness: Witness) -> list[Result]:
    """Return the results, the red ones with the defects that reproduce them.

    Two defects are tried together for what none alone reproduces.
    """
    chosen = suspects(results, variant)[:_MOST]
    found = _Matches(results, witness)
    found.try_out([(defect,) for defect in chosen])
    confirmed = [defect for defect in chosen if found.weight((defect,))]
    if found.unexplained():
        found.try_out(list(itertools.combinations(confirmed[:_PAIRED], 2)))
    return [replace(result, looks_like=found.of(result)) for result in results]


class _Matches:
    """Which defects reproduce which failures."""

    def __init__(self, results: Iterable[Result], witness: Witness) -> None:
        red = [r for r in results if r.verdict.red]
        binding = [r for r in red if r.clause.level is Level.MUST] or red
        # what concerns every component takes them all: tried only where nothing else tells
        self._red = [r for r in binding if r.clause.component != "all"] or binding
        self._witness = witness
        self._by_clause: dict[str, list[tuple[Defect, ...]]] = {result.clause.id: [] for result in self._red}
        self._weight: dict[tuple[Defect, ...], int] = {}

    def try_out(self, combinations: Sequence[tuple[Defect, ...]]) -> None:
        """Compare what the reference with these defects does, on what nothing explains so far."""
        wanted = [r for r in self._red if not self._by_clause[r.clause.id]]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            matches = pool.map(lambda chosen: self._matched(chosen, wanted), combinations)
        for chosen, matched in zip(combinations, matches, strict=True):
            for result in matched:
                self._by_clause[result.clause.id].append(chosen)
            self._weight[chosen] = sum(1 + numbers_in(result) for result in matched)

    def _matched(self, chosen: tuple[Defect, ...], wanted: Sequence[Result]) -> list[Result]:
        components = {result.clause.component for result in wanted} - {"all"}
        try:
            with self._witness(chosen, components or set(COMPONENTS)) as judge:
                return [r for r in wanted if same_failure(r, judge.result(r.clause.id))]
        except (PatchError, LoadFailure):
            return []

    def weight(self, chosen: tuple[Defect, ...]) -> int:
        """How much they explain: a failure that quotes numbers counts more."""
        return self._weight.get(chosen, 0)

    def unexplained(self) -> bool:
        """Whether some failure that quotes numbers is reproduced by nothing."""
        return any(numbers_in(result) and not self._by_clause[result.clause.id] for result in self._red)

    def of(self, result: Result) -> tuple[LooksLike, ...]:
        """Return what reproduces a failure: what explains most of all failures, all of that where it is a tie."""
        candidates = self._by_clause.get(result.clause.id, [])
        if not candidates:
            return ()
        most = max(self._weight[chosen] for chosen in candidates)
        best = [chosen for chosen in candidates if self._weight[chosen] == most]
        certainty = Certainty.UNSURE if len(best) > 1 else Certainty.EXACT if numbers_in(result) else Certainty.LIKELY
        return tuple(
            LooksLike(defect.id, defect.title, certainty, tuple(d.id for d in chosen if d is not defect), defect.hint)
            for chosen in best
            for defect in chosen
        )
