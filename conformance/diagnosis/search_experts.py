"""Variants with other experts, or without: searched for where no usual choices give a component's numbers.

How many experts there are follows from the number of parameters, which grows by the same number with each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from conformkit.conformance.diagnosis.search_rare import changed
from conformkit.spec.variants import Variant, alternatives

__all__ = ["mixtures"]

_SHAPES = ("gated", "ffn_bias")
_MOST_ACTIVE = 8
_MAX_EXPERTS = 1000
Lacking = Callable[[Variant], int | None]
"""How many trainable numbers a variant of the definition has less than the component; None if it can't be built."""


def mixtures(base: Variant, own: Sequence[str], lacking: Lacking) -> Iterator[Variant]:
    """Yield variants with the component's number of parameters, as many experts as that takes.

    `own` are the usual choices of the component that may differ as well.
    """
    for shape in changed(base, [choice for choice in _SHAPES if choice in own]):
        if base.experts and lacking(single := shape.but(experts=0)) == 0:
            yield from _activated(single, own)
        pairs = ((shared, bias) for shared in (False, True) for bias in (False, True))
        first = base.shared_expert, base.router_bias
        for shared, bias in sorted(pairs, key=lambda pair: sum(a != b for a, b in zip(pair, first, strict=True))):
            mixture = shape.but(shared_expert=shared, router_bias=bias)
            if number := _number(mixture, lacking):
                yield from _used(mixture.but(experts=number), own)


def _number(mixture: Variant, lacking: Lacking) -> int:
    """Return the number of experts with which nothing is lacking; 0 if there is none from 2 on."""
    one, two = (lacking(mixture.but(experts=number)) for number in (1, 2))
    if one is None or two is None or one <= two or one % (one - two):
        return 0
    number = 1 + one // (one - two)
    return number if 2 <= number <= _MAX_EXPERTS else 0


def _used(mixture: Variant, own: Sequence[str]) -> Iterator[Variant]:
    """Yield a mixture with every number of active experts and all weights, the usual ones first."""
    usual = dict.fromkeys((mixture.experts_active, 2, 1, 4, *range(1, _MOST_ACTIVE + 1)))
    for variant in _activated(mixture, own):
        for active in (number for number in usual if number <= mixture.experts):
            yield variant.but(experts_active=active)
            weights = alternatives("expert_weights", mixture.expert_weights)
            yield from (variant.but(experts_active=active, expert_weights=other) for other in weights)


def _activated(variant: Variant, own: Sequence[str]) -> Iterator[Variant]:
    return changed(variant, ["activation"] if "activation" in own else [])
