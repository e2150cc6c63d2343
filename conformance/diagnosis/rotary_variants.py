"""Variants with rotary positions of a part of a head, or scaled ones: tried where nothing else gives the numbers.

They have more numbers than other choices, so they are listed as they are used; no combination of two of them is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product

from conformkit.conformance.diagnosis.modern import changed
from conformkit.spec.variants import Variant, alternatives

__all__ = ["ROTARY_CHOICES", "WIDE", "idle", "needs_width", "rotary_variants"]

ROTARY_CHOICES = (
    "rotary_fraction", "rotary_scaling", "rotary_factor", "rotary_length", "rotary_low", "rotary_high",
    "rotary_whole_pairs", "rotary_magnitude",
)  # fmt: skip
WIDE = (
    {"d_model": 96, "num_heads": 6, "d_ff": 28},
    {"d_model": 160, "num_heads": 10, "d_ff": 20, "pad_id": 2},
)
"""Sizes with heads that are wide enough for several pairs."""
_SHAPES = 12
"""Maximum number of shapes for which these variants are computed: each costs a second."""
_BASES = (10000.0, 500000.0, 1000000.0, 150000.0)


def needs_width(variant: Variant) -> bool:
    """Whether narrow heads cannot have, or do not show, a variant's rotary positions."""
    return variant.positions == "rotary" and (variant.rotary_fraction != 1.0 or variant.rotary_scaling != "none")


def idle(variant: Variant) -> list[str]:
    """Return the choices that have no effect beside the others."""
    if variant.rotary_scaling == "yarn":
        return []
    yarn = ["rotary_whole_pairs", "rotary_magnitude"]
    turns = ["rotary_length", "rotary_low", "rotary_high"]
    if variant.rotary_scaling == "llama3":
        return yarn
    return [*yarn, *turns] if variant.rotary_scaling != "none" else [*yarn, *turns, "rotary_factor"]


def rotary_variants(
    base: Variant, own: Sequence[str], shaping: set[str], fits: Callable[[Variant], bool]
) -> Iterator[Variant]:
    """Yield variants that differ from a base in such positions and fit, the usual ones first."""
    shapes = [choice for choice in own if choice in shaping and choice != "positions"]
    turned = base.but(positions="rotary")
    shaped = islice((v for v in islice(changed(turned, shapes), 2000) if fits(v)), _SHAPES)
    for variant in shaped:
        layouts = (variant.rotary_layout, *alternatives("rotary_layout", variant.rotary_layout))
        for layout, number in product(layouts, dict.fromkeys((variant.rotary_base, *_BASES))):
            like = variant.but(rotary_layout=layout, rotary_base=number)
            yield from _parts(like)
            yield from _scaled(like)


def _parts(base: Variant) -> Iterator[Variant]:
    """Yield the same with a part of each head rotated."""
    yield from (base.but(rotary_fraction=share) for share in alternatives("rotary_fraction", base.rotary_fraction))


def _scaled(base: Variant) -> Iterator[Variant]:
    """Yield the same with scaled frequencies."""
    factors = (base.rotary_factor, *alternatives("rotary_factor", base.rotary_factor))
    for scaling, factor in product(("none", "linear", "ntk"), factors):
        yield base.but(rotary_scaling=scaling, rotary_factor=factor)
    lengths = (base.rotary_length, *alternatives("rotary_length", base.rotary_length))
    for factor, length in product(factors, lengths):
        given = base.but(rotary_factor=factor, rotary_length=length)
        yield given.but(rotary_scaling="llama3")
        for whole in (True, False):
            yield given.but(rotary_scaling="yarn", rotary_whole_pairs=whole)
