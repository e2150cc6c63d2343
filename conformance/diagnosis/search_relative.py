"""Tables of relative positions: searched for where an array has a column for each head, and as many rows as buckets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from conformkit.spec.choices.record import WHOLE_MODELS
from conformkit.spec.variants import Variant

__all__ = ["BESIDE_A_TABLE", "with_tables"]

BESIDE_A_TABLE = ("score_scale", "tied_scale")
"""Choices that only models with such tables have: elsewhere a scale that is missing, or one too many, is a mistake."""
_FEWEST = 8
"""Rows of the smallest table that is taken for one."""


def with_tables(
    base: Variant, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, Any], name: str
) -> Iterator[Variant]:
    """Yield a variant with the tables that a component's arrays may be, those with the usual number of rows first.

    From which distance the last row holds is not searched for: short inputs don't show it.
    """
    rows = {s[0] for s in shapes.values() if len(s) == 2 and s[1] == sizes["num_heads"] and s[0] % 4 == 0}
    usual = base.relative_buckets
    for count in sorted((n for n in rows if n >= _FEWEST), key=lambda n: (n != usual, n)):
        for scaled, shared in product(
            (base.score_scale, not base.score_scale), (base.relative_shared, not base.relative_shared)
        ):
            own = {"relative_buckets": count, "relative_shared": shared, "score_scale": scaled}
            table = base.but(positions="relative", **own)
            yield table
            if name in WHOLE_MODELS:
                yield table.but(tied=True, tied_scale=not base.tied_scale)
