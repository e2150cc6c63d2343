"""From red clauses to the mistake that causes them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

from conformkit.conformance.defects import Defect
from conformkit.conformance.defects.kills import kills
from conformkit.conformance.diagnosis.explaining import Explanation, Hypothesis, explain
from conformkit.conformance.diagnosis.patching import PatchError
from conformkit.conformance.diagnosis.similarity import Likeness, at_most, telling
from conformkit.conformance.diagnosis.suspects import Suspect, suspects
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.needed import of_tests
from conformkit.conformance.engine.results import Certainty, LooksLike, Result, Verdict
from conformkit.spec.clauses import Level, clause
from conformkit.spec.components import COMPONENTS, PARTS, component, is_component
from conformkit.spec.variants import Variant

__all__ = ["diagnose"]

Witness = Callable[[Sequence[Defect], Collection[str]], AbstractContextManager[Judge]]
"""Judges some components of the reference with some defects."""

_MAX_DEFECTS = 12
"""Maximum number of defects to try alone."""
_AT_LAST = 24
"""The same, if none of those reproduces a failure as closely as possible."""
_FOR_WARNINGS = 8
"""The same for warnings, which most mistakes that break nothing else break alone."""
_PAIRED = 3
"""Maximum number of those that explain something to combine in pairs."""
_AT_ONCE = 2
"""Number of references with defects that run at the same time."""
_COMPARED = 12
"""Maximum number of failures to compare."""
_NEARLY_RIGHT, _ROUNDING = 100.0, 1e-3
"""An error of less than this many times what is allowed is rather one of rounding than of the idea, if no more than
this share is allowed: of a clause that allows a hundredth, every error is less."""
_BEHIND = 2.0
"""A suspect that is this much less plausible than one that fails alike is not tried."""


def diagnose(
    results: Sequence[Result], variant: Variant, witness: Witness, otherwise: Witness | None = None, *,
    cached: bool = False, level: Level = Level.MUST,
) -> list[Result]:  # fmt: skip
    """Return the results, the red ones with the defects that reproduce them.

    Two defects are tried together for failures that none alone reproduces. `otherwise` judges the reference in the
    variant that the implementation shows, if that is not the declared one: failures that this choice alone explains say
    nothing about other mistakes. `cached` says that text is right unless a cache is used. What does not bind at this
    `level` is explained last, by defects that break nothing else.
    """
    red = _to_explain(results, level)
    chosen = _broken_by_choice(red, otherwise) if otherwise is not None else set()
    explanations: dict[str, Explanation] = {}
    for part, judged_by in (([r for r in red if r.clause.id not in chosen], otherwise or witness),
                            ([r for r in red if r.clause.id in chosen], witness)):  # fmt: skip
        if part:
            search = _Search(part, judged_by)
            search.run(suspects(part, results, variant, cached=cached))
            explanations |= explain(part, search.hypotheses)
    if warned := _to_name_beside(red, results):
        search = _Search(warned, otherwise or witness)
        search.run(_of_warnings(suspects(warned, results, variant, cached=cached)), most=_FOR_WARNINGS)
        explanations |= explain(warned, search.hypotheses)
    named = [
        replace(r, looks_like=_named(r, explanations[r.clause.id])) if r.clause.id in explanations else r
        for r in results
    ]
    given = {name for name, one in explanations.items() if one.hypotheses[0].likenesses.get(name, 0) >= Likeness.SAME}
    vague = {r.clause.id for r in named if _guessed_beside(r, named) or (_says_itself(r) and r.clause.id not in given)}
    named = [replace(r, looks_like=()) if r.clause.id in vague else r for r in named]
    return [replace(r, looks_like=_known_elsewhere(r, named)) if _about_all(r) else r for r in named]


def _guessed_beside(result: Result, named: Sequence[Result]) -> bool:
    """Whether all that is named is a guess, while other numbers are known to be those of a mistake.

    What is wrong in a part shows in the whole, too, and there hardly as in the reference. And where the numbers of
    the same component say what makes them, a guess about another clause of it is most likely another mistake.
    """
    if not result.looks_like or result.looks_like[0].certainty is not Certainty.UNSURE:
        return False
    exact = (r for r in named if r.looks_like and r.looks_like[0].certainty is Certainty.EXACT)
    said = (r for r in named if r.verdict.red and r.clause.component == result.clause.component and _tells(r))
    return bool(list(said)) or any(_is_part(one.clause.component, result.clause.component) for one in exact)


def _tells(result: Result) -> bool:
    """Whether its numbers say what they are, or how they are made."""
    relation = result.finding.relation if result.finding is not None else None
    return relation is not None and relation.telling


def _says_itself(result: Result) -> bool:
    """Whether all that is named is a guess, while the numbers say themselves how they are wrong."""
    return bool(result.looks_like) and result.looks_like[0].certainty is Certainty.UNSURE and _tells(result)


def _is_part(name: str, whole: str) -> bool:
    """Whether rounding adds up on the way through more components in `whole`: then it has such parts."""
    return is_component(name) and is_component(whole) and component(name).depth < component(whole).depth


def _about_all(result: Result) -> bool:
    """Whether it is a failure of a clause about all components, which nothing has explained yet."""
    return result.verdict.red and result.clause.component == "all" and not result.looks_like


def _known_elsewhere(result: Result, named: Sequence[Result]) -> tuple[LooksLike, ...]:
    """Return what explains another failure of the component that it speaks of, if that is known to break this too.

    It was not compared: one cause shall have one red line, not two with two fixes.
    """
    for other in named:
        known = other.looks_like
        sure = known and all(like.certainty is not Certainty.UNSURE for like in known)
        breaks = any(result.clause.id in kills().get(like.defect, ()) for like in known)
        if sure and breaks and result.finding is not None and result.finding.mentions(other.clause.component):
            return tuple(replace(like, certainty=Certainty.LIKELY) for like in known)
    return ()


def _named(result: Result, explanation: Explanation) -> tuple[LooksLike, ...]:
    """Return the mistakes to name; of results that are nearly right only one that gives these very numbers."""
    found = explanation.looks_like(result.clause.id)
    # with 1 or less every comparison passed, and what failed is no number
    near = result.verdict is Verdict.FAIL and 1.0 < (result.distance or 0.0) < _NEARLY_RIGHT
    if near and ((result.finding and result.finding.tolerance) or 0.0) < _ROUNDING:
        return tuple(like for like in found if like.certainty is Certainty.EXACT)
    return found


def _to_explain(results: Sequence[Result], level: Level) -> list[Result]:
    """Return the failures that count; those of a SHOULD, and of all components, only if there is nothing else."""
    red = [result for result in results if result.verdict.red and level.includes(result.clause.level)]
    binding = [result for result in red if result.clause.level is Level.MUST] or red
    return ([result for result in binding if result.clause.component != "all"] or binding)[:_COMPARED]


def _to_name_beside(red: Sequence[Result], results: Sequence[Result]) -> list[Result]:
    """Return the warnings about a component that are not explained anyway."""
    known = {result.clause.id for result in red}
    warned = [r for r in results if r.verdict.red and r.clause.level is not Level.MUST and r.clause.component != "all"]
    return [result for result in warned if result.clause.id not in known][:_COMPARED]


def _of_warnings(suspected: Iterable[Suspect]) -> Iterator[Suspect]:
    """Yield the suspects that break no binding clause: one that does has been tried for what is binding."""
    return (s for s in suspected if all(clause(name).level is not Level.MUST for name in s.defect.clauses))


def _broken_by_choice(red: Sequence[Result], witness: Witness) -> set[str]:
    """Return the clauses that fail in the same way if the only mistake is an undeclared choice."""
    search = _Search(red, witness)
    choice = search.tried((), 0.0)
    return {name for name, like in choice.likenesses.items() if like >= Likeness.SAME}


def _needed(results: Sequence[Result]) -> set[str]:
    """Return the components that the clauses of these results need; all, if they are about no single one."""
    bound: set[str] = set()
    for one in (result.clause for result in results if result.clause.component != "all"):
        bound |= of_tests([one], one.profile) or set(COMPONENTS)
    return bound or set(COMPONENTS)


def _within_reach(result: Result, chosen: Sequence[Defect]) -> bool:
    """Whether one of the defects may break this: it is about what they break, or contains that."""
    name = result.clause.component
    broken = {clause(one).component for defect in chosen for one in (*defect.clauses, *defect.also)}
    return not is_component(name) or name in broken or not broken.isdisjoint(PARTS.get(name, ()))


class _Search:
    """Tries the suspects for some failures."""

    def __init__(self, red: Sequence[Result], witness: Witness) -> None:
        self._red = red
        self._witness = witness
        self.hypotheses: list[Hypothesis] = []

    def run(self, suspected: Iterable[Suspect], most: int = 0) -> None:
        """Try each suspect that may change the answer, at most so many; then pairs, where some numbers are open."""
        waiting = iter(suspected)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while len(self.hypotheses) < (most or (_MAX_DEFECTS if any(map(self._explained, self._red)) else _AT_LAST)):
                wave = list(itertools.islice(filter(self._may_matter, waiting), _AT_ONCE))
                if not wave:
                    break
                self.hypotheses += pool.map(lambda s: self.tried((s.defect,), s.plausible), wave)
            pairs = [] if most else list(pool.map(lambda pair: self.tried(*pair), list(self._pairs())))
        self.hypotheses += [pair.beyond(h for h in self.hypotheses if pair.includes(h)) for pair in pairs]

    def tried(self, chosen: tuple[Defect, ...], plausible: float) -> Hypothesis:
        """Compare on clauses that the defects are known to break, then on the rest if any of those is alike.

        The rest is what a defect can break: its own components, and those that contain them. Binding components is
        most of what a suspect costs, so that only those are bound that are asked about.
        """
        known = {name for defect in chosen for name in defect.clauses}
        first = [result for result in self._red if result.clause.id in known]
        rest = [result for result in self._red if result.clause.id not in known]
        hypothesis = Hypothesis(chosen, plausible)
        try:
            if first:
                hypothesis, rest = self._compared(hypothesis, first, [r for r in rest if _within_reach(r, chosen)])
            if rest:
                hypothesis, _ = self._compared(hypothesis, rest)
        except (PatchError, LoadFailure, DriverError):
            pass  # nothing can be judged with them
        return hypothesis

    def _compared(
        self, hypothesis: Hypothesis, first: Sequence[Result], rest: Sequence[Result] = ()
    ) -> tuple[Hypothesis, list[Result]]:
        """Compare on the first, and if any is alike, on those of the rest that need no further component.

        Returns what is left to be compared, too: nothing where none is alike.
        """
        bound = _needed(first)
        with self._witness(hypothesis.defects, bound) as judge:
            hypothesis = hypothesis.beside((ours, judge.result(ours.clause.id)) for ours in first)
            if hypothesis.best() < Likeness.KIND:
                return hypothesis, []
            there = [ours for ours in rest if _needed([ours]) <= bound]
            hypothesis = hypothesis.beside((ours, judge.result(ours.clause.id)) for ours in there)
        return hypothesis, [ours for ours in rest if ours not in there]

    def _pairs(self) -> Iterator[tuple[tuple[Defect, ...], float]]:
        """Yield pairs of those that explain something, if none reproduces the numbers of some failure."""
        names = [result.clause.id for result in self._red]
        some = any(hypothesis.best() >= Likeness.SAME for hypothesis in self.hypotheses)
        if not some or all(self._explained(result) for result in self._red if telling(result)):
            return
        known = sorted((h for h in self.hypotheses if h.best() >= Likeness.COUNTS), key=lambda h: -h.weight(names))
        for one, other in itertools.combinations(known[:_PAIRED], 2):
            yield one.defects + other.defects, min(one.plausible, other.plausible) - _BEHIND

    def _explained(self, result: Result) -> bool:
        return any(hypothesis.best([result.clause.id]) >= at_most(result) for hypothesis in self.hypotheses)

    def _may_matter(self, suspect: Suspect) -> bool:
        """Whether a failure is still open that the suspect is known to cause; if it is known for none, any failure."""
        known = [result for result in self._red if result.clause.id in suspect.defect.clauses]
        return any(not self._settled(result, suspect) for result in known or self._red)

    def _settled(self, result: Result, suspect: Suspect) -> bool:
        """Whether a failure has an explanation that this suspect is unlikely to improve on."""
        for hypothesis in self.hypotheses:
            like = hypothesis.likenesses.get(result.clause.id, Likeness.NONE)
            behind = suspect.plausible <= hypothesis.plausible - _BEHIND
            enough = (
                at_most(result) if result.verdict is Verdict.FAIL else Likeness.SAME
            )  # the message comes from a library
            if like is Likeness.EXACT or (behind and like >= enough):
                return True
            if suspect.plausible < 0.0 and like >= Likeness.KIND:
                return True
        return False
