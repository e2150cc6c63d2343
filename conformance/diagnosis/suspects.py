"""Which defects the verdicts leave possible, the most plausible first. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from conformkit.conformance.defects import COMMON, Defect, defect
from conformkit.conformance.defects.kills import kills, named
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.spec.clauses import clause
from conformkit.spec.components import PARTS
from conformkit.spec.variants import Variant, choices, records

__all__ = ["Suspect", "suspects"]

_FIRST = 2.0
"""The law goes from special to general: the first clause that fails says most about the mistake."""
_GREEN = 3.0
_GREEN_ELSEWHERE = 1.0
"""Another component may pass because it uses other parts than the reference does."""
_MOST_COUNTED = 3
_ALIKE = 3.0
"""Weight if it broke exactly the red clauses when it was measured."""
_SUPPOSED = 0.5
"""Weight if it should break them, although that was not measured."""
_OF_A_CHOICE = 2.0
"""If a choice was made and something is wrong, the mistake is often in that choice."""
_OF_THE_CACHE = 8.0
"""If text is right only without the cache, hardly anything but the cache explains that."""
_OPEN = {name for name, kind in choices().items() if not isinstance(kind, tuple) and kind is not bool}
"""Choices of any number or expression: a window is one whatever its width, and a size can be written in many ways."""
_SIBLINGS = frozenset(name for name, record in records().items() if record.siblings)
"""Choices whose values are one part in two widths: a mistake that was measured in one of them is made in the other."""
_UNSEEN = -4.0
"""No clause that it is known to break could be judged where the defect would show."""
_NEXT = 2.0
"""Weight if it breaks a clause that waits for a red one: they are about the same matter."""
_FUNCTION = "ScaledDotProductAttention"
"""Parts that many implementations repeat in several places: one copy may be right and another wrong."""
_JUDGED = {Verdict.PASS, *(verdict for verdict in Verdict if verdict.red)}


@dataclass(frozen=True, slots=True)
class Suspect:
    """A defect, and its plausibility before anything is tried."""

    defect: Defect
    plausible: float


def suspects(
    red: Sequence[Result], results: Iterable[Result], variant: Variant, *, cached: bool = False
) -> Iterator[Suspect]:
    """Yield the defects that could cause the red clauses, the most plausible first.

    An implementation with a defect breaks every clause that the defect names: one of those green in a component rules
    the defect out there. Further clauses that it broke when measured may depend on the reference, and only affect the
    ranking. Only the files of defects that are suspect are parsed, since to parse all takes longer than the rest.
    `cached` says that text is right without the cache: then defects of the cache come first.
    """
    verdicts = {result.clause.id: result.verdict for result in results}
    reds = [result.clause.id for result in red]
    all_red = {name for name, verdict in verdicts.items() if verdict.red and clause(name).level is red[0].clause.level}
    seen = _read(name for name, names in named().items() if not all_red.isdisjoint(names))
    behind = _behind(reds, verdicts)
    weighed = _weighed(seen, reds[0], all_red, verdicts) | dict(_beneath(behind, reds[0]))
    yield from _ranked(weighed, variant, cached=cached)
    known = {found.id for found in (*seen, *behind)}
    waiting = {name for name, verdict in verdicts.items() if verdict is Verdict.BLOCKED and _waits(name, reds)}
    hidden = {
        found: _UNSEEN + (0.0 if waiting.isdisjoint(found.clauses) else _NEXT)
        for found in _read(n for n, names in named().items() if n not in known and _hidden(names, reds, verdicts))
    }
    yield from _ranked(hidden, variant, cached=cached)


def _read(names: Iterable[str]) -> list[Defect]:
    return [found for name in names if (found := defect(name)) is not None]


def _behind(red: Sequence[str], verdicts: Mapping[str, Verdict]) -> dict[Defect, set[str]]:
    """Return the defects of parts that are not exported, with the red clauses that depend on those parts.

    A whole contains its stacks: a defect that would break a clause about them breaks the first clause about the whole.
    """
    absent = {name: _absent(name, verdicts) for name in red}
    found: dict[Defect, set[str]] = {}
    for name, broken in kills().items():
        shown = {one for one, needs in absent.items() if not needs.isdisjoint(broken)}
        if shown and not any(verdicts.get(n) in _JUDGED for n in named()[name]):
            found |= dict.fromkeys(_read([name]), shown)
    return found


def _absent(name: str, verdicts: Mapping[str, Verdict]) -> set[str]:
    """Return the clauses about unexported parts that a clause needs, directly or indirectly."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        needs = {n for n in clause(waiting.pop()).needs if verdicts.get(n) is Verdict.NOT_IMPLEMENTED} - found
        found |= needs
        waiting += needs
    return found


def _beneath(behind: Mapping[Defect, AbstractSet[str]], first: str) -> Iterator[tuple[Defect, float]]:
    """Yield the plausibility of each, after those that broke exactly the red clauses."""
    for found, shown in behind.items():
        yield found, min(len(shown), _MOST_COUNTED) + (_FIRST if first in shown else 0.0) + _SUPPOSED


def _weighed(
    found: Iterable[Defect], first: str, red: AbstractSet[str], verdicts: Mapping[str, Verdict]
) -> dict[Defect, float]:
    """Return the plausibility of each defect that is not ruled out."""
    broken = kills()
    weights = {one: _plausible(one, first, red, verdicts) for one in found}
    return {
        one: weight + _ALIKE * _overlap({*broken.get(one.id, ())}, red, verdicts)
        for one, weight in weights.items()
        if weight is not None
    }


def _overlap(broken: AbstractSet[str], red: AbstractSet[str], verdicts: Mapping[str, Verdict]) -> float:
    """Return how well the clauses that a defect breaks, if they could be judged, match what is red at any level."""
    judged = {name for name in broken if (verdict := verdicts.get(name)) is not None and verdict in _JUDGED}
    broke = {name for name in judged if verdicts[name].red}
    return len(broke) / max(len(judged | red), 1)


def _ranked(weights: Mapping[Defect, float], variant: Variant, *, cached: bool) -> list[Suspect]:
    """Sort by plausibility, including how common each defect is and where text goes wrong."""
    ranked = [
        Suspect(found, weight + _beforehand(found, cached=cached))
        for found, weight in weights.items()
        if _fits(found, variant)
    ]
    return sorted(ranked, key=lambda suspect: (-suspect.plausible, suspect.defect.id))


def _plausible(found: Defect, first: str, red: AbstractSet[str], verdicts: Mapping[str, Verdict]) -> float | None:
    """Compare what a defect breaks with what is red; None if every component where it shows rules it out."""
    explained = [name for name in found.clauses if name in red]
    green = [name for name in found.clauses if verdicts.get(name) is Verdict.PASS]
    own = {clause(name).component for name in explained}
    if own <= {clause(name).component for name in green}:
        return None
    weight = min(len(explained), _MOST_COUNTED) + (_FIRST if first in explained else 0.0)
    return weight - sum(_GREEN if clause(name).component in own else _GREEN_ELSEWHERE for name in green)


def _waits(name: str, red: Sequence[str]) -> bool:
    """Whether a clause says nothing until one of the red ones passes."""
    return not set(clause(name).needs).isdisjoint(red)


def _hidden(names: Sequence[str], red: Sequence[str], verdicts: Mapping[str, Verdict]) -> bool:
    """Whether a defect that breaks these clauses belongs to what fails first, and no result rules it out."""
    whole = clause(red[0]).component
    inside = {clause(name).component for name in names} <= {whole} | PARTS.get(whole, frozenset())
    return whole in PARTS and inside and not any(_acquits(name, verdicts) for name in names)


def _acquits(name: str, verdicts: Mapping[str, Verdict]) -> bool:
    """Whether a clause passed in a place where the defect would break it."""
    return verdicts.get(name) is Verdict.PASS and clause(name).component != _FUNCTION


def _beforehand(found: Defect, *, cached: bool) -> float:
    """Return the plausibility of a defect that does not depend on what it breaks."""
    common = len(COMMON) - 1 - COMMON.index(found.common)
    return common + _OF_A_CHOICE * _chosen(found) + _OF_THE_CACHE * (cached and _switches_the_cache(found))


def _switches_the_cache(found: Defect) -> bool:
    """Whether it is a cache defect although no cache is used: its patch has to enable the cache in the reference."""
    return any("use_cache" in patch.find for patch in found.patches)


def _chosen(found: Defect) -> bool:
    """Whether a defect is about choices that are not canonical."""
    return bool(found.choices)


def _fits(found: Defect, variant: Variant) -> bool:
    """Whether the implementation has the defect's variant; the value of a choice that is open does not matter."""
    shown = variant.differences(found.base)
    free = _OPEN | _SIBLINGS
    return all(name in shown and (name in free or shown[name] == value) for name, value in found.choices.items())
