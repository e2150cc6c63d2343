"""Which defects the verdicts leave possible, the most plausible first. Nothing is run for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from conformkit.conformance.defects import COMMON, Defect, defect, defects
from conformkit.conformance.defects.kills import kills
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.spec.clauses import clause
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import Variant

__all__ = ["Suspect", "suspects"]

_FIRST = 2.0
"""The law goes from the special to the general: the first clause that fails tells most of the mistake."""
_GREEN = 3.0
_GREEN_ELSEWHERE = 1.0
"""Another component may be fine because it is made of other parts than the reference's."""
_MOST_COUNTED = 3
_ALIKE = 3.0
"""How much it says that it broke the very clauses that are red when it was measured, and no others."""
_SUPPOSED = 0.5
"""How much it says that it would break them, though that has not been seen."""
_OF_A_CHOICE = 2.0
"""Where a choice was made and something is wrong, it is often what the choice brought along."""
_OF_THE_CACHE = 8.0
"""Where text is right without the cache, hardly anything else explains that it is not with it."""
_SIZES = {"kv_heads", "head_width"}
"""Choices that are expressions: one size can be written in many ways."""
_UNSEEN = -4.0
"""Nothing that it is known to break could be judged where it would show."""
_FUNCTION = "ScaledDotProductAttention"
"""What many write again wherever they need it: one of them may be right and another one wrong."""
_JUDGED = {Verdict.PASS, *(verdict for verdict in Verdict if verdict.red)}
_WITHIN = {
    "SelfAttention": {"SelfAttention", _FUNCTION},
    "MultiHeadAttention": {"MultiHeadAttention", _FUNCTION},
    "TransformerBlock": {"TransformerBlock", "MultiHeadAttention", "FeedForward", _FUNCTION},
    "TinyTransformerLM": set(COMPONENTS),
}
"""What a component is made of."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A defect, and how plausible it is before anything is tried."""

    defect: Defect
    plausible: float


def suspects(
    red: Sequence[Result], results: Iterable[Result], variant: Variant, *, cached: bool = False
) -> Iterator[Suspect]:
    """Yield the defects that could be behind the red clauses, the most plausible first.

    Whoever has a defect breaks every clause that it names: a component acquits with one of those green. What it broke
    beside them when it was measured may depend on how it was made, and ranks only. Files are only read of those that
    have been seen to break something that is red, until all of them have been tried. `cached` says that text is right
    without the cache: then those of the cache come first.
    """
    verdicts = {result.clause.id: result.verdict for result in results}
    reds = [result.clause.id for result in red]
    all_red = {name for name, verdict in verdicts.items() if verdict.red and clause(name).level is red[0].clause.level}
    broken = {name: names for name, names in kills().items() if not all_red.isdisjoint(names)}
    seen = [found for name in broken if (found := defect(name)) is not None and not all_red.isdisjoint(found.clauses)]
    behind = _behind(reds, verdicts)
    weighed = _weighed(seen, reds[0], all_red, verdicts) | dict(_beneath(behind, reds[0]))
    yield from _ranked(weighed, variant, cached=cached)
    seen += [found for found in behind if found not in seen]
    others = [found for found in defects().values() if found not in seen]
    named = [found for found in others if not all_red.isdisjoint(found.clauses)]  # measured, another one blocked that
    hidden = {found: _UNSEEN for found in others if found not in named and _hidden(found, reds, verdicts)}
    yield from _ranked(_weighed(named, reds[0], all_red, verdicts) | hidden, variant, cached=cached)


def _behind(red: Sequence[str], verdicts: Mapping[str, Verdict]) -> dict[Defect, set[str]]:
    """Return the defects of parts that are not exported, with the red clauses that say nothing without those parts.

    A whole has its stacks inside: what would show in a clause about them shows in the first one about the whole.
    """
    absent = {name: _absent(name, verdicts) for name in red}
    found: dict[Defect, set[str]] = {}
    for name, broken in kills().items():
        shown = {one for one, needs in absent.items() if not needs.isdisjoint(broken)}
        if shown and (one := defect(name)) is not None and not any(verdicts.get(n) in _JUDGED for n in one.clauses):
            found[one] = shown
    return found


def _absent(name: str, verdicts: Mapping[str, Verdict]) -> set[str]:
    """Return the clauses about what is not exported that a clause needs, and that those need."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        needs = {n for n in clause(waiting.pop()).needs if verdicts.get(n) is Verdict.NOT_IMPLEMENTED} - found
        found |= needs
        waiting += needs
    return found


def _beneath(behind: Mapping[Defect, AbstractSet[str]], first: str) -> Iterator[tuple[Defect, float]]:
    """Yield how plausible each of them is: behind whoever has been seen to break just what is red."""
    for found, shown in behind.items():
        yield found, min(len(shown), _MOST_COUNTED) + (_FIRST if first in shown else 0.0) + _SUPPOSED


def _weighed(
    found: Iterable[Defect], first: str, red: AbstractSet[str], verdicts: Mapping[str, Verdict]
) -> dict[Defect, float]:
    """Return how plausible each is that is not acquitted."""
    broken = kills()
    weights = {one: _plausible(one, first, red, verdicts) for one in found}
    return {
        one: weight + _ALIKE * _overlap({*broken.get(one.id, ())}, red, verdicts)
        for one, weight in weights.items()
        if weight is not None
    }


def _overlap(broken: AbstractSet[str], red: AbstractSet[str], verdicts: Mapping[str, Verdict]) -> float:
    """Return how far the clauses that a defect breaks, as far as they could be judged, are those that are red."""
    judged = {name for name in broken if (verdict := verdicts.get(name)) is not None and verdict in _JUDGED}
    return len(judged & red) / max(len(judged | red), 1)


def _ranked(weights: Mapping[Defect, float], variant: Variant, *, cached: bool) -> list[Suspect]:
    """Put first who is more plausible when it is counted in how common each is, and where the text goes wrong."""
    ranked = [
        Suspect(found, weight + _beforehand(found, cached=cached))
        for found, weight in weights.items()
        if _fits(found, variant)
    ]
    return sorted(ranked, key=lambda suspect: (-suspect.plausible, suspect.defect.id))


def _plausible(found: Defect, first: str, red: AbstractSet[str], verdicts: Mapping[str, Verdict]) -> float | None:
    """Weigh what a defect breaks against what is broken; None where every component that it shows in acquits it."""
    explained = [name for name in found.clauses if name in red]
    green = [name for name in found.clauses if verdicts.get(name) is Verdict.PASS]
    own = {clause(name).component for name in explained}
    if own <= {clause(name).component for name in green}:
        return None
    weight = min(len(explained), _MOST_COUNTED) + (_FIRST if first in explained else 0.0)
    return weight - sum(_GREEN if clause(name).component in own else _GREEN_ELSEWHERE for name in green)


def _hidden(found: Defect, red: Sequence[str], verdicts: Mapping[str, Verdict]) -> bool:
    """Whether a defect is within what fails first, and nothing says that it is not."""
    inside = {clause(name).component for name in found.clauses} <= _WITHIN.get(clause(red[0]).component, set())
    return inside and not any(_acquits(name, verdicts) for name in found.clauses)


def _acquits(name: str, verdicts: Mapping[str, Verdict]) -> bool:
    """Whether a clause was found to hold, in a place where whoever has the defect would break it."""
    return verdicts.get(name) is Verdict.PASS and clause(name).component != _FUNCTION


def _beforehand(found: Defect, *, cached: bool) -> float:
    """Return what speaks for a defect whatever it breaks."""
    common = len(COMMON) - 1 - COMMON.index(found.common)
    return common + _OF_A_CHOICE * _chosen(found) + _OF_THE_CACHE * (cached and _switches_the_cache(found))


def _switches_the_cache(found: Defect) -> bool:
    """Whether a defect is the cache's in a text that asks for none: it has to switch it on in the reference."""
    return any("use_cache" in patch.find for patch in found.patches)


def _chosen(found: Defect) -> bool:
    """Whether a defect is about choices that are not canonical."""
    return bool(found.variant.differences())


def _fits(found: Defect, variant: Variant) -> bool:
    """A defect of some variant takes an implementation of that variant; how a size is written there does not matter."""
    shown, wanted = variant.differences(), found.variant.differences()
    return all(name in shown and (name in _SIZES or shown[name] == value) for name, value in wanted.items())
