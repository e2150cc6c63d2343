"""Variants with rare choices: searched for where none of the usual ones gives a component's numbers.

Kept apart, so that they neither slow the search for usual choices down nor change its order.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, islice, product
from typing import Any

from conformkit.conformance.diagnosis.looked_for import RARE_SHAPING, SHAPING
from conformkit.spec.variants import Variant, alternatives, records

__all__ = ["Idle", "Values", "changed", "is_usual", "rare_variants"]

_CONSIDERED, _EACH = 2000, 200
"""Limits: variants whose parameters are counted, and variants that are computed for each set of parameters."""
_MOST_CHANGES = 3
_USUAL_EPS = (1e-5, 1e-6)
Values = Callable[[str, Any], Sequence[Any]]
Idle = Callable[[Variant], Collection[str]]


def is_usual(choice: str, value: Any) -> bool:
    """Whether a value of a usual choice is not one that only newer models have."""
    return value not in records()[choice].rare


def rare_variants(
    base: Variant, own: Sequence[str], rare: Sequence[str], fits: Callable[[Variant], bool], values: Values, idle: Idle
) -> Iterator[Variant]:
    """Yield variants that differ from a base in some rare choice or by a rare value and fit, the nearest first.

    `own` are the usual choices of the component that may differ as well; `idle` tells those without effect.
    """
    shapes = [choice for choice in (*rare, *own) if choice in SHAPING | RARE_SHAPING]
    others = [choice for choice in (*rare, *own) if choice not in shapes or records()[choice].rare]
    usual = partial(_usual, values)
    for shaped in islice(changed(base, shapes, None, values, idle), _CONSIDERED):
        if fits(shaped):
            found = (v for v in changed(shaped, others, _MOST_CHANGES, usual, idle) if _is_rare(v, base, rare))
            yield from islice(found, _EACH)


def _usual(values: Values, choice: str, value: Any) -> Sequence[Any]:
    """Return the other values of a choice; of the smallest numbers in norms only the usual ones."""
    return [v for v in values(choice, value) if choice != "norm_eps" or v in _USUAL_EPS]


def _is_rare(variant: Variant, base: Variant, rare: Sequence[str]) -> bool:
    if any(getattr(variant, choice) != getattr(base, choice) for choice in rare):
        return True
    return any(not is_usual(choice, getattr(variant, choice)) for choice in _with_rare_values())


@functools.cache
def _with_rare_values() -> tuple[str, ...]:
    return tuple(choice for choice, record in records().items() if record.rare)


def changed(
    base: Variant, choices: Sequence[str], most: int | None = None, values: Values = alternatives,
    idle: Idle = lambda _: (),
) -> Iterator[Variant]:  # fmt: skip
    """Yield a variant and all that differ from it in some of these choices, at most so many, the fewest first.

    `idle` tells the choices without effect: a change that has none beside the others is left out.
    """
    wakers = _wakers(base, choices, values, idle)
    for count in range(len(choices) + 1 if most is None else min(most, len(choices)) + 1):
        for chosen in combinations(choices, count):
            if any(count <= 2 if not others else others.isdisjoint(chosen) for others in _of(chosen, wakers)):
                continue
            asleep = [choice for choice in chosen if choice in wakers or choice != "positions"]
            others = [values(choice, getattr(base, choice)) for choice in chosen]
            for each in product(*others):
                variant = base.but(**dict(zip(chosen, each, strict=True)))
                if not asleep or set(idle(variant)).isdisjoint(asleep):
                    yield variant


def _of(chosen: Sequence[str], wakers: Mapping[str, set[str]]) -> Iterator[set[str]]:
    return (wakers[choice] for choice in chosen if choice in wakers)


def _wakers(base: Variant, choices: Sequence[str], values: Values, idle: Idle) -> dict[str, set[str]]:
    """Return, for each choice that has no effect in a base, those of which another value gives it one."""
    found: dict[str, set[str]] = {choice: set() for choice in choices if choice in idle(base)}
    for other in choices if found else ():
        for value in values(other, getattr(base, other)):
            still = idle(base.but(**{other: value}))
            for choice in (choice for choice in found if choice not in still):
                found[choice].add(other)
    return found
