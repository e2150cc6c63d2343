"""The hypotheses that were tried, and which of them explains which failure best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from conformkit.conformance.defects import COMMON, Defect, Patch, defect
from conformkit.conformance.defects.kills import kills
from conformkit.conformance.defects.twins import twins_of
from conformkit.conformance.diagnosis.similarity import Likeness, at_most, likeness
from conformkit.conformance.engine.results import Certainty, LooksLike, Result, Verdict
from conformkit.conformance.findings.statements import indistinguishable

__all__ = ["Explanation", "Hypothesis", "explain"]

_WEIGHTS = {
    Likeness.NONE: -2.0, Likeness.RED: 0.0, Likeness.KIND: 1.0, Likeness.WORDS: 2.0, Likeness.COUNTS: 3.0,
    Likeness.SAME: 4.0, Likeness.DRAWS: 7.0, Likeness.EXACT: 8.0,
}  # fmt: skip
"""Weight of the similarity of one failure, in addition to the prior plausibility of the hypothesis."""
_CLEARLY = 2.0
"""A hypothesis is better than another if its weight is larger by this much."""
_SHOWN, _GUESSED = 3, 2
"""How many are named at most: those that fit, and those that are a guess."""
_ENTRIES = 16
"""Of fewer wrong entries the number is the same in many mistakes."""


@dataclass(frozen=True)
class Hypothesis:
    """Defects, and the results of the reference with them on clauses that the implementation failed."""

    defects: tuple[Defect, ...]
    plausible: float
    results: Mapping[str, Result] = field(default_factory=dict)
    likenesses: Mapping[str, Likeness] = field(default_factory=dict)

    def beside(self, pairs: Iterable[tuple[Result, Result]]) -> Hypothesis:
        """Compare further failures of the implementation with the reference's results on them."""
        judged = [(ours, theirs) for ours, theirs in pairs if theirs.verdict.red or theirs.verdict is Verdict.PASS]
        return replace(
            self,
            results={**self.results, **{ours.clause.id: theirs for ours, theirs in judged}},
            likenesses={**self.likenesses, **{ours.clause.id: likeness(ours, theirs) for ours, theirs in judged}},
        )

    def weight(self, names: Iterable[str]) -> float:
        """Return the weight of the evidence for it on these clauses."""
        return self.plausible + sum(_WEIGHTS[self.likenesses[name]] for name in names if name in self.likenesses)

    def best(self, names: Iterable[str] | None = None) -> Likeness:
        """Return the closest similarity among these clauses, or among all."""
        found = self.likenesses if names is None else [name for name in names if name in self.likenesses]
        return max((self.likenesses[name] for name in found), default=Likeness.NONE)

    def beyond(self, parts: Iterable[Hypothesis]) -> Hypothesis:
        """Return it for the failures alone that none of its parts reproduces as well."""
        apart = list(parts)
        left = {
            name: like
            for name, like in self.likenesses.items()
            if all(like > part.likenesses.get(name, Likeness.NONE) for part in apart)
        }
        return replace(self, results={name: self.results[name] for name in left}, likenesses=left)

    def says_something(self, red: Iterable[Result]) -> bool:
        """Whether one of these failures has the same words, or both raised."""
        return any(
            self.likenesses.get(result.clause.id, Likeness.NONE) >= min(at_most(result), Likeness.WORDS)
            for result in red
        )

    def reaches(self, red: Iterable[Result]) -> bool:
        """Whether it is as like some failure as anything can be."""
        return any(self.likenesses.get(result.clause.id, Likeness.NONE) >= at_most(result) for result in red)

    def gives_numbers(self, red: Iterable[Result]) -> bool:
        """Whether it gives the numbers of some failure, though not of all: what has the same words alone has no name.

        Sampled numbers are near each other in many mistakes, so those of them must agree to every digit. That as many
        entries are wrong says something where they are many and some are right.
        """
        return any(self.likenesses.get(result.clause.id, Likeness.NONE) >= _enough(result) for result in red)

    def includes(self, other: Hypothesis) -> bool:
        """Whether it contains the other one and more."""
        return len(self.defects) > len(other.defects) and set(other.defects) <= set(self.defects)

    def falls_behind(self, other: Hypothesis, names: Iterable[str]) -> bool:
        """Whether it gives other numbers than the implementation on a clause where another one gives those."""
        return any(
            other.likenesses.get(name, Likeness.NONE) >= Likeness.SAME
            and self.likenesses.get(name, Likeness.SAME) < Likeness.SAME
            for name in names
        )

    def same_as(self, other: Hypothesis) -> bool:
        """Whether no judged clause distinguishes the two."""
        ours, theirs = self.results, other.results
        common = ours.keys() & theirs.keys()
        return bool(common) and all(_same_said(ours[name], theirs[name]) for name in common)


@dataclass(frozen=True)
class Explanation:
    """Hypotheses that explain a failure, the best first, and how certain that is."""

    hypotheses: tuple[Hypothesis, ...]
    certainty: Certainty

    def looks_like(self, name: str) -> tuple[LooksLike, ...]:
        """Return it in the form of a report; it is exact only for clauses whose numbers agree."""
        like = self.hypotheses[0].likenesses.get(name, Likeness.NONE)
        sure = self.certainty is not Certainty.EXACT or like is Likeness.EXACT
        certainty = self.certainty if sure else Certainty.LIKELY
        shown = _GUESSED if certainty is Certainty.UNSURE else _SHOWN
        return tuple(
            LooksLike(d.id, d.title, certainty, tuple(o.id for o in hypothesis.defects if o is not d), d.hint)
            for hypothesis in self.hypotheses[:shown]
            for d in hypothesis.defects
            if like >= Likeness.KIND
        )


def explain(red: Sequence[Result], hypotheses: Sequence[Hypothesis]) -> dict[str, Explanation]:
    """Return explanations by clause: first the hypothesis with most evidence, then others for what it leaves open."""
    found: dict[str, Explanation] = {}
    left, hypotheses = list(red), [*hypotheses, *_twins(hypotheses)]
    while left:
        names = [result.clause.id for result in left]
        said = (hypothesis for hypothesis in hypotheses if hypothesis.says_something(left))
        live = sorted(said, key=lambda h: (not (h.reaches(left) or h.gives_numbers(left)), -h.weight(names)))
        if not live:
            break
        explained = [name for name in names if live[0].likenesses.get(name, Likeness.NONE) > Likeness.NONE]
        explanation = _explanation(live[0], live[1:], left)
        if explanation is not None:
            found |= dict.fromkeys(explained, explanation)
        left = [result for result in left if result.clause.id not in explained]
    return {name: _less_sure(explanation, red, found) for name, explanation in found.items()}


def _less_sure(explanation: Explanation, red: Sequence[Result], found: Mapping[str, Explanation]) -> Explanation:
    """Take back that it is exact where, by its mistake, a failure in its component that has no name would pass."""
    likenesses = explanation.hypotheses[0].likenesses
    components = {r.clause.component for r in red if likenesses.get(r.clause.id, Likeness.NONE) is Likeness.EXACT}
    lost = any(
        r.clause.component in components and r.clause.id not in found and likenesses.get(r.clause.id) is Likeness.NONE
        for r in red
    )
    if explanation.certainty is not Certainty.EXACT or not lost:
        return explanation
    return replace(explanation, certainty=Certainty.LIKELY)


def _twins(hypotheses: Sequence[Hypothesis]) -> Iterator[Hypothesis]:
    """Yield the twins that were not tried of those that were: they fail as these do."""
    tried = {one.id for hypothesis in hypotheses for one in hypothesis.defects}
    for hypothesis in hypotheses:
        if len(hypothesis.defects) != 1:
            continue
        (known,) = hypothesis.defects
        for twin in filter(None, map(defect, twins_of(known.id))):
            if twin.id not in tried:
                tried.add(twin.id)
                rarer = COMMON.index(twin.common) - COMMON.index(known.common)
                yield replace(hypothesis, defects=(twin,), plausible=hypothesis.plausible - rarer)


def _explanation(chosen: Hypothesis, others: Sequence[Hypothesis], left: Sequence[Result]) -> Explanation | None:
    """Add to the best hypothesis those that cannot be distinguished from it; None if it is a guess."""
    names = [result.clause.id for result in left]
    near = [o for o in others if o.weight(names) > chosen.weight(names) - _CLEARLY and not o.includes(chosen)]
    alike = [other for other in near if other.same_as(chosen)]
    rivals = [other for other in near if other not in alike]
    rivals = [rival for rival in rivals if not rival.falls_behind(chosen, names)]
    exact = [name for name in names if chosen.likenesses.get(name) is Likeness.EXACT]
    if exact:
        rivals = [rival for rival in rivals if all(rival.likenesses.get(n) is Likeness.EXACT for n in exact)]
    if rivals and chosen.best(names) is Likeness.KIND:
        return None
    hypotheses = (chosen, *alike, *rivals)
    if rivals or not chosen.reaches(left):
        return Explanation(hypotheses, Certainty.UNSURE) if chosen.gives_numbers(left) else None
    if not exact:
        sure = all(_one_mistake(chosen, other) or _are_twins(chosen, other) for other in alike)
        return Explanation(hypotheses, Certainty.LIKELY if sure else Certainty.UNSURE)
    # two may by chance give what another one gives
    doubtful = len(chosen.defects) > 1 or _contradicted(chosen, left) or not all(_one_mistake(chosen, o) for o in alike)
    return Explanation(hypotheses, Certainty.LIKELY if doubtful else Certainty.EXACT)


def _one_mistake(one: Hypothesis, other: Hypothesis) -> bool:
    """Whether two that fail alike are the same mistake: in the same place, and breaking the same clauses."""
    (ours, *more), (theirs, *further) = one.defects, other.defects
    same_place = any(_same_place(mine, yours) for mine in ours.patches for yours in theirs.patches)
    broken = kills()
    return not more and not further and same_place and broken.get(ours.id) == broken.get(theirs.id)


def _are_twins(one: Hypothesis, other: Hypothesis) -> bool:
    """Whether no clause tells them apart: what one of them fixes is looked for where the other one would be."""
    (ours, *more), (theirs, *further) = one.defects, other.defects
    return not more and not further and theirs.id in twins_of(ours.id)


def _same_place(one: Patch, other: Patch) -> bool:
    """Whether one patch replaces a part of what the other one replaces."""
    elsewhere = one.file != other.file or (one.at and other.at and one.at != other.at)
    return not elsewhere and (one.find.strip() in other.find or other.find.strip() in one.find)


def _contradicted(chosen: Hypothesis, left: Sequence[Result]) -> bool:
    """Whether it gives the implementation's exact numbers on one clause of a component, but not on another."""
    by_component: dict[str, set[Likeness]] = {}
    for result in left:
        if at_most(result) is Likeness.EXACT:
            like = chosen.likenesses.get(result.clause.id, Likeness.NONE)
            by_component.setdefault(result.clause.component, set()).add(like)
    others = {Likeness.WORDS, Likeness.COUNTS}
    return any(Likeness.EXACT in likes and not likes.isdisjoint(others) for likes in by_component.values())


def _enough(result: Result) -> Likeness:
    """Return from which likeness on a mistake gives the numbers of a failure."""
    found = result.finding
    if found is not None and not found.sampled and _ENTRIES <= found.bad < found.of:
        return Likeness.COUNTS
    return Likeness.DRAWS if found is not None and found.sampled else Likeness.SAME


def _same_said(one: Result, other: Result) -> bool:
    return one.verdict is other.verdict and indistinguishable(one.finding, other.finding)
