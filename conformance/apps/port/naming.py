"""Which mistake made these numbers of the right ones: known mistakes tried, then what the numbers say by themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.converting import Conversion
from conformkit.conformance.apps.port.mistake import Mistake, Right, mistakes
from conformkit.conformance.apps.port.moves import MovePlan
from conformkit.conformance.apps.port.numbers import alike, resembling
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.conformance.apps.port.source import CanonicalWeights
from conformkit.conformance.binding.rules import folded
from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["explained", "misplaced"]

_MANY = 3
"""Layers whose numbers are examined, where there are more: the first, the middle one, the last."""
_SHOWN = 6


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
    return list(_explained(right, got, wrong, there)) if wrong else []


def _explained(
    right: Right, got: Callable[[str], Array], wrong: Sequence[str], there: Iterable[str]
) -> Iterator[NamedMistake]:
    """Yield the mistakes that explain all that is wrong: one alone if there is one, else several, else the numbers."""
    examined = _few(wrong, right.own["num_layers"])
    held = _few([name for name in there if name not in set(wrong)], right.own["num_layers"])
    cover: dict[str, set[str]] = {}
    loose: Mistake | None = None
    for mistake in mistakes().values():
        if mistake.choices or not mistake.possible(right):
            continue
        explains, open_ = _explains(mistake, right, got, examined, held)
        if explains == set(examined):
            yield _named(mistake, right, wrong, "exact")
            return
        if explains and explains | open_ == set(examined):
            loose = loose or mistake
        if explains:
            cover[mistake.id] = explains
    if loose is not None:
        yield _named(loose, right, wrong, "exact")
        return
    rest = set(examined)
    while rest:
        best = max(cover, key=lambda name: len(cover[name] & rest), default=None)
        if best is None or not cover[best] & rest:
            break
        own = cover.pop(best)
        yield _named(mistakes()[best], right, [n for n in examined if n in own & rest], "likely")
        rest -= own
    if rest:
        yield from resembling(right, got, [name for name in examined if name in rest])


def _explains(
    mistake: Mistake, right: Right, got: Callable[[str], Array], wrong: Sequence[str], held: Sequence[str]
) -> tuple[set[str], set[str]]:
    """Return the wrong parameters whose numbers a mistake gives, and those of which it leaves open what they hold.

    None if it would change one that is right.
    """
    nothing: tuple[set[str], set[str]] = (set(), set())
    found, open_ = set(), set()
    for name in wrong:
        array = mistake.altered(name, right)
        if array is not None and np.isnan(array).all():
            open_.add(name)
        elif array is not None and alike(got(name), array):
            found.add(name)
    if not found:
        return nothing
    for name in held:
        array = mistake.altered(name, right)
        if array is not None and not np.isnan(array).all() and not alike(right.ours(name), array):
            return nothing
    return found, open_


def _few(names: Sequence[str], layers: int) -> list[str]:
    """Return the names outside blocks, and those of a few blocks."""
    numbers = sorted({int(p) for name in names if folded(name) != name for p in name.split(".") if p.isdecimal()})
    if len(numbers) > _MANY:
        numbers = [numbers[0], numbers[len(numbers) // 2], numbers[-1]]
    del layers
    kept = {str(number) for number in numbers}
    return [n for n in names if folded(n) == n or kept & set(n.split("."))]


def _named(mistake: Mistake, right: Right, where: Sequence[str], certainty: str) -> NamedMistake:
    return NamedMistake(mistake.id, f"exactly your numbers {mistake.said(right)}", certainty, tuple(where[:_SHOWN]))


def _misshapen(got: CanonicalWeights) -> Iterator[NamedMistake]:
    """Name what a wrong shape says."""
    for name, (one, want) in got.misshapen.items():
        where = (name,)
        if one == want[::-1]:
            yield NamedMistake("transposed", f"{name} is transposed: {one}, want {want}", "exact", where)
        elif len(one) == len(want) and one[1:] == want[1:]:
            more = one[0] - want[0]
            what = f"{abs(more)} rows {'more' if more > 0 else 'fewer'} than it should have: {one}, want {want}"
            known = (
                "padding of the vocabulary"
                if name in got.places("embedding.weight") + got.places("head.weight")
                else ""
            )
            known = known or ("an offset of positions" if name in got.places("positions.weight") else "")
            yield NamedMistake("rows", f"{name} has {what}{f' ({known}?)' if known else ''}", "likely", where)
