"""Relative positions that are learned, as in T5: each head adds a number to its scores for each range of distances."""

from __future__ import annotations

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights
from conformkit.spec.variants import Variant

__all__ = ["buckets", "relative_bias", "shared_table"]

_ROUNDING = 1e-9
"""Distances at which a bucket begins count as reached, however a logarithm is rounded."""


def buckets(length: int, variant: Variant, *, causal: bool) -> Array:
    """Return the bucket of each pair of a query and a key, integers (T, T).

    One side has n buckets: distances below n / 2 have one each, larger ones share n / 2, which grow as the logarithm up
    to `relative_distance`; what is farther is in the last. Causal, all buckets are for earlier keys, and later ones are
    in bucket 0; otherwise the second half of them is for later keys. Source: Raffel et al. 2020, §2.1, and their code.
    """
    ahead = np.arange(length) - np.arange(length)[:, None]  # (T, T), of the key before the query
    side = variant.relative_buckets if causal else variant.relative_buckets // 2
    distance = np.maximum(-ahead, 0) if causal else np.abs(ahead)
    near = side // 2
    grown = np.log(np.maximum(distance, 1) / near) / np.log(variant.relative_distance / near) * (side - near)
    far = np.minimum(near + np.floor(grown + _ROUNDING).astype(np.int64), side - 1)
    found = np.where(distance < near, distance, far)
    return np.asarray(found if causal else found + side * (ahead > 0))


def relative_bias(table: Array, length: int, variant: Variant, *, causal: bool) -> Array:
    """Return what is added to scores: entries of the table (buckets, H), as (H, T, T)."""
    return np.moveaxis(np.asanyarray(table)[buckets(length, variant, causal=causal)], -1, 0)


def shared_table(weights: Weights, attention: str, variant: Variant) -> Weights:
    """Return the table that layers share, called `relative.weight` beside them, by its name in each: of its attention.

    Nothing where layers have tables of their own, or none.
    """
    return {f"{attention}.relative.weight": weights["relative.weight"]} if variant.shares_table else {}
