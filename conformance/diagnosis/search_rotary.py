"""Variants with rotary positions of a part of a head, or scaled ones: tried where nothing else gives the numbers.

They have more numbers than other choices, so they are listed as they are used; no combination of two of them is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product

from conformkit.conformance.diagnosis.looked_for import SHAPING
from conformkit.conformance.diagnosis.search_rare import changed
from conformkit.spec.variants import Variant, alternatives

__all__ = ["WIDE", "needs_width", "rotary_variants"]

WIDE = (
    {"d_model": 96, "num_heads": 6, "d_ff": 28},
    {"d_model": 160, "num_heads": 10, "d_ff": 20, "pad_id": 2},
)
"""Sizes with heads that are wide enough for several pairs."""
_SHAPES = 4
"""Maximum number of shapes for which these variants are computed: each costs a fifth of a second."""
_BASES = (500000.0, 1000000.0, 150000.0)
_USUAL = ((32.0, 4096), (40.0, 4096), (4.0, 32768))
"""Factors and lengths that published models have together: gpt-oss, DeepSeek, Qwen."""


def needs_width(variant: Variant) -> bool:
    """Whether narrow heads cannot have, or do not show, a variant's rotary positions."""
    return variant.positions == "rotary" and (variant.rotary_fraction != 1.0 or variant.rotary_scaling != "none")


def rotary_variants(base: Variant, own: Sequence[str], fits: Callable[[Variant], bool]) -> Iterator[Variant]:
    """Yield variants that differ from a base in such positions and fit, the usual ones first."""
    shapes = [choice for choice in own if choice in SHAPING and choice != "positions"]
    turned = base.but(positions="rotary")
    shaped = islice((v for v in islice(changed(turned, shapes), 2000) if fits(v)), _SHAPES)
    for variant in shaped:
        for layout in (variant.rotary_layout, *alternatives("rotary_layout", variant.rotary_layout)):
            like = variant.but(rotary_layout=layout)
            yield from _parts(like)
            yield from _stretched(like)
            yield from _scaled(like)
            for number in (number for number in _BASES if number != like.rotary_base):
                other = like.but(rotary_base=number)
                yield other
                yield from _parts(other)
                yield from _scaled(other)


def _parts(base: Variant) -> Iterator[Variant]:
    """Yield the same with a part of each head rotated."""
    yield from (base.but(rotary_fraction=share) for share in alternatives("rotary_fraction", base.rotary_fraction))


def _stretched(base: Variant) -> Iterator[Variant]:
    """Yield the same with frequencies that one factor scales."""
    factors = (base.rotary_factor, *alternatives("rotary_factor", base.rotary_factor))
    for scaling, factor in product(("none", "linear", "ntk"), factors):
        yield base.but(rotary_scaling=scaling, rotary_factor=factor)


def _scaled(base: Variant) -> Iterator[Variant]:
    """Yield the same with frequencies that are scaled beyond a length; factor and length differ one at a time."""
    factors = (base.rotary_factor, *alternatives("rotary_factor", base.rotary_factor))
    lengths = alternatives("rotary_length", base.rotary_length)
    pairs = [(factor, base.rotary_length) for factor in factors]
    pairs += [(base.rotary_factor, length) for length in lengths]
    for factor, length in (*pairs, *_USUAL):
        given = base.but(rotary_factor=factor, rotary_length=length)
        yield given.but(rotary_scaling="llama3")
        for whole in (True, False):
            yield given.but(rotary_scaling="yarn", rotary_whole_pairs=whole)
