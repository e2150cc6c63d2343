"""Choices that have no effect in a component beside its others, so that no variant is computed twice."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from conformkit.spec.choices.record import PlaysNoPart
from conformkit.spec.variants import CANONICAL, Variant, records

__all__ = ["OF_QK_NORM", "distinct", "effective", "without_effect"]

OF_QK_NORM = ("norm", "norm_weight", "norm_eps")
"""Choices that attention shows only where its queries and keys have a norm."""


def without_effect(variant: Variant, name: str) -> list[str]:
    """Return the choices that change nothing in a component of this variant."""
    return [choice for choice, idle in _idle() if idle(variant, name)]


@functools.cache
def _idle() -> tuple[tuple[str, PlaysNoPart], ...]:
    return tuple((name, record.idle) for name, record in records().items() if record.can_be_idle)


def effective(variant: Variant, name: str) -> Variant:
    """Return the variant without choices that have no effect in a component."""
    chosen = ((choice, idle) for choice, idle in _idle() if getattr(variant, choice) != getattr(CANONICAL, choice))
    changes = {choice: getattr(CANONICAL, choice) for choice, idle in chosen if idle(variant, name)}
    return variant.but(**changes) if changes else variant


def distinct(found: Iterable[Variant], name: str, *known: Variant) -> Iterator[Variant]:
    """Yield variants as a component has them, each once, and none of the known ones."""
    seen = set(known)
    for variant in (effective(one, name) for one in found):
        if variant not in seen:
            seen.add(variant)
            yield variant
