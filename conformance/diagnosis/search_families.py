"""Variants near the families that presets name: searched for where few changes of what is declared do not fit.

A family is many choices at once, which a search by the number of changes does not reach.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from conformkit.conformance.diagnosis.search_rare import Idle, Values, changed
from conformkit.spec.presets import PRESETS
from conformkit.spec.variants import Variant

__all__ = ["near_families"]

_SIZES = ("kv_heads", "head_width", "tied", "head_bias", "qkv_bias")
"""Choices that add parameters, of which models of one family differ in two at most."""
_NUMBERS = ("window", "window_layers", "norm_eps", "rotary_base", "rotary_fraction", "score_cap", "logit_cap")
"""Choices that add none, of which one or two may differ."""
_EACH = 4


def near_families(
    base: Variant, own: Sequence[str], fits: Callable[[Variant], bool], values: Values, idle: Idle
) -> Iterator[Variant]:
    """Yield variants that have a component's choices, `own`, as a family has them, those that differ least first."""
    numbers = [choice for choice in _NUMBERS if choice in own]
    known = dict.fromkeys(base.but(**{c: getattr(family, c) for c in own}) for family in PRESETS.values())
    sized = [choice for choice in _SIZES if choice in own]
    shaped = [v for family in known for v in islice(filter(fits, changed(family, sized, 2, values, idle)), _EACH)]
    for most in (0, 1, 2):
        yield from (v for one in shaped for v in changed(one, numbers, most, values, idle))
