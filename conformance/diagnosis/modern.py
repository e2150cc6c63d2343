"""Variants with parts of newer models: searched for where none of the older choices gives a component's numbers.

Kept apart, so that these parts neither slow the search for older choices down nor change its order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, islice, product
from typing import Any

from conformkit.spec.variants import Variant, alternatives

__all__ = [
    "ATTENTION",
    "MODEL",
    "NETWORK",
    "NORMS",
    "SHAPING",
    "Idle",
    "Values",
    "changed",
    "is_older",
    "modern_variants",
]

ATTENTION = ("qk_norm", "sinks", "score_cap", "window", "alibi_slopes", "output_gate")
NORMS = ("norm_weight",)
MODEL = ("logit_cap", "window_layers")
NETWORK = ("gate_limit", "gate_offset")
SHAPING = {"qk_norm", "sinks", "output_gate", "norm_weight", "placement"}
"""Modern choices that add or remove parameters."""
_VALUES: Mapping[str, tuple[Any, ...]] = {
    "positions": ("alibi",), "activation": ("quick_gelu",),
    "placement": ("sandwich", "output", "parallel", "parallel_two_norms", "deepnorm"),
}  # fmt: skip
"""Modern values of older choices."""
_CONSIDERED, _EACH = 2000, 200
"""Limits: variants whose parameters are counted, and variants that are computed for each set of parameters."""
_MOST_CHANGES = 3
_USUAL_EPS = (1e-5, 1e-6)
Values = Callable[[str, Any], Sequence[Any]]
Idle = Callable[[Variant], Collection[str]]


def is_older(choice: str, value: Any) -> bool:
    """Whether a value of an older choice is not a modern one."""
    return value not in _VALUES.get(choice, ())


def modern_variants(
    base: Variant, own: Sequence[str], modern: Sequence[str], shaping: set[str], fits: Callable[[Variant], bool],
    values: Values, idle: Idle,
) -> Iterator[Variant]:  # fmt: skip
    """Yield variants that differ from a base in some modern choice and fit, the nearest first.

    `own` are the older choices of the component that may differ as well; `idle` tells those without effect.
    """
    shapes = [choice for choice in (*modern, *own) if choice in shaping | SHAPING]
    others = [choice for choice in (*modern, *own) if choice not in shapes or choice in _VALUES]
    usual = partial(_usual, values)
    for shaped in islice(changed(base, shapes, None, values, idle), _CONSIDERED):
        if fits(shaped):
            found = (v for v in changed(shaped, others, _MOST_CHANGES, usual, idle) if _is_modern(v, base, modern))
            yield from islice(found, _EACH)


def _usual(values: Values, choice: str, value: Any) -> Sequence[Any]:
    """Return the other values of a choice; of the smallest numbers in norms only the usual ones."""
    return [v for v in values(choice, value) if choice != "norm_eps" or v in _USUAL_EPS]


def _is_modern(variant: Variant, base: Variant, modern: Sequence[str]) -> bool:
    if any(getattr(variant, choice) != getattr(base, choice) for choice in modern):
        return True
    return any(not is_older(choice, getattr(variant, choice)) for choice in _VALUES)


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
