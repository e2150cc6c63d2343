"""Which mistake made these numbers of the right ones: known mistakes tried, then what the numbers say by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.converting import Conversion
from conformkit.conformance.apps.port.mistake import Mistake, Right, foremost, mistakes
from conformkit.conformance.apps.port.moves import MovePlan
from conformkit.conformance.apps.port.numbers import alike, resembling
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.conformance.apps.port.source import CanonicalWeights
from conformkit.conformance.apps.port.unloaded import unloaded
from conformkit.conformance.binding.rules import folded
from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["explained", "misplaced"]

_EXAMINED_LAYERS = 3
"""Layers whose numbers are examined, where there are more: the first, the middle one, the last."""
_SHOWN = 6
_TWINS = 3
"""Mistakes with the same numbers, of which so many are said."""


def misplaced(
    plan: MovePlan, source: CanonicalWeights, conversion: Conversion, got: CanonicalWeights, theirs: Variant,
    ours: Variant, sizes: Mapping[str, Any], own: Mapping[str, Any],
) -> list[NamedMistake]:  # fmt: skip
    """Name what makes the numbers of a converted file differ from the right ones; nothing where they do not."""
    right = Right(plan, source.read, conversion.canonical, (theirs, ours), sizes, own)
    there = [name for name in plan.parameters if got.has(name)]
    return [*_misshapen(got), *explained(right, got.read, there)]


def explained(right: Right, got: Callable[[str], Array], there: Sequence[str]) -> list[NamedMistake]:
    """Name what makes these parameters differ from the right ones; nothing where none does."""
    wrong = [name for name in there if not alike(got(name), right.ours(name))]
    empty, of_these = unloaded(right, got, wrong, there) if wrong else ([], set())
    rest = [name for name in wrong if name not in of_these]
    known = [name for name in there if name not in of_these]
    return [*empty, *(_explained(right, got, rest, known) if rest else [])]


def _explained(
    right: Right, got: Callable[[str], Array], wrong: Sequence[str], there: Iterable[str]
) -> Iterator[NamedMistake]:
    """Yield the mistakes that explain all that is wrong: one alone if there is one, else several, else the numbers.

    Where several explain it alike, all of them are said: nothing tells them apart.
    """
    layers, bad = right.own["num_layers"], set(wrong)
    examined = set(_few(wrong, layers))
    held = _few([name for name in there if name not in bad], layers)
    known = [mistake for mistake in mistakes().values() if not mistake.of_code]
    fits = [f for m in known if (f := _Fit.of(m, right, got, sorted(examined), held)).explains]
    if right.plan.moves_numbers and not any(f.whole and f.explains | f.left_open == examined for f in fits):
        first = right.before()  # the conversion was right, and what it was given was not
        early = (_Fit.of(m, right, got, sorted(examined), held, first) for m in known)
        fits += [fit for fit in early if fit.explains]
    for alone in (
        [fit for fit in fits if fit.whole and fit.explains == examined],
        [fit for fit in fits if fit.whole and fit.explains | fit.left_open == examined],
        _nearest([fit for fit in fits if fit.explains == examined and fit.in_part(right)]),
    ):
        if alone:
            said = {mistake.id for mistake in foremost(fit.mistake for fit in alone)}
            found_alone = (fit.named(right, wrong, "exact") for fit in alone if fit.mistake.id in said)
            by_words = {named.sentence: named for named in found_alone}  # one made before and after a move reads alike
            yield from list(by_words.values())[:_TWINS]
            return
    rest = set(examined)
    for cover in ([fit for fit in fits if fit.whole], [f for f in fits if f.in_part(right) and not f.copies]):
        while rest and cover:
            best = max(cover, key=lambda fit: (len(fit.explains & rest), -len(fit.against)))
            cover.remove(best)
            if not best.explains & rest:
                break
            own = best.explains & rest
            yield best.named(right, [name for name in wrong if name in own], "likely")
            rest -= own
    if rest:
        yield from resembling(right, got, [name for name in wrong if name in rest])


@dataclass(frozen=True, slots=True)
class _Fit:
    """A mistake against the numbers that are there.

    `explains` are wrong parameters whose numbers it gives, `left_open` those of which it says nothing, `against` right
    ones that it would change: then it was made in some layers, or in some parameters, only.
    """

    mistake: Mistake
    explains: frozenset[str] = frozenset()
    left_open: frozenset[str] = frozenset()
    against: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether it was made wherever it can be."""
        return not self.against

    @property
    def copies(self) -> bool:
        """Whether it only puts parameters in the places of others, which the numbers themselves say of a few."""
        return bool({"taken", "layers"} & set(self.mistake.body))

    def in_part(self, right: Right) -> bool:
        """Whether it was made in some places only, as conversions make it: code does what it does everywhere.

        One parameter that holds another one is said as that, and half of an exchange is a copy.
        """
        if self.whole or self.mistake.title.startswith("your code") or (self.copies and len(self.explains) == 1):
            return False
        return any(self.mistake.taken_from(name, right) not in self.against for name in self.explains)

    @staticmethod
    def of(
        mistake: Mistake, right: Right, got: Callable[[str], Array], wrong: Sequence[str], held: Sequence[str],
        before: Right | None = None,
    ) -> _Fit:  # fmt: skip
        """Try a mistake; with `before`, one that was made in theirs, which then were moved rightly."""
        if not mistake.possible(before or right):
            return _Fit(mistake)

        def altered(name: str) -> Array | None:
            if before is None:
                return mistake.altered(name, right)
            source = right.plan.sources(name)
            array = None if source is None else mistake.altered(source, before)
            return None if array is None else right.plan.moved(name, array)

        made = {name: array for name in wrong if (array := altered(name)) is not None}
        left_open = frozenset(name for name, array in made.items() if np.isnan(array).all())
        explains = frozenset(n for n, array in made.items() if n not in left_open and alike(got(n), array))
        if not explains:
            return _Fit(mistake)
        against = tuple(name for name in held if _changes(altered(name), right.ours(name)))
        return _Fit(mistake, explains, left_open, against)

    def named(self, right: Right, where: Sequence[str], certainty: str) -> NamedMistake:
        """Return it in words."""
        parts = {folded(name) for name in self.explains}
        alone = f", in {self._where(parts, where)} alone" if self.against else ""
        sentence = f"exactly your numbers {self.mistake.said(right)}{alone}"
        return NamedMistake(self.mistake.id, sentence, certainty, tuple(where[:_SHOWN]))

    def _where(self, parts: AbstractSet[str], wrong: Iterable[str]) -> str:
        """Return in which parameters and layers it was made."""
        layers = sorted({int(n.split(".")[1]) for n in wrong if folded(n) in parts and folded(n) != n})
        some = any(folded(name) in parts for name in self.against)
        blocks = f"{'block' if len(layers) == 1 else 'blocks'} {', '.join(map(str, layers))}" if some and layers else ""
        if {folded(name) for name in self.against} <= parts and blocks:
            return blocks
        names = ", ".join(sorted(part.replace("blocks.{i}.", "") for part in parts))
        return f"{names} of {blocks}" if blocks else names


def _changes(array: Array | None, want: Array) -> bool:
    """Whether a mistake, which makes this of a parameter that is right, would change it."""
    return array is not None and not np.isnan(array).all() and not alike(want, array)


def _nearest(fits: Sequence[_Fit]) -> list[_Fit]:
    """Return those that were made nearly wherever they can be."""
    least = min((len(fit.against) for fit in fits), default=0)
    return [fit for fit in fits if len(fit.against) == least]


def _few(names: Sequence[str], layers: int) -> list[str]:
    """Return the names outside blocks, and those of a few blocks."""
    numbers = sorted({int(p) for name in names if folded(name) != name for p in name.split(".") if p.isdecimal()})
    if len(numbers) > _EXAMINED_LAYERS:
        numbers = [numbers[0], numbers[len(numbers) // 2], numbers[-1]]
    del layers
    kept = {str(number) for number in numbers}
    return [n for n in names if folded(n) == n or kept & set(n.split("."))]


def _misshapen(got: CanonicalWeights) -> Iterator[NamedMistake]:
    """Name what a wrong shape says."""
    for name, (one, want) in got.misshapen.items():
        where = (name,)
        if one == want[::-1]:
            yield NamedMistake("transposed", f"{name} is transposed: {one}, expected {want}", "exact", where)
        elif len(one) == len(want) and one[1:] == want[1:]:
            more = one[0] - want[0]
            what = f"{abs(more)} rows {'more' if more > 0 else 'fewer'} than it should have: {one}, expected {want}"
            known = (
                "padding of the vocabulary"
                if name in got.places("embedding.weight") + got.places("head.weight")
                else ""
            )
            known = known or ("an offset of positions" if name in got.places("positions.weight") else "")
            yield NamedMistake("rows", f"{name} has {what}{f' ({known}?)' if known else ''}", "likely", where)
