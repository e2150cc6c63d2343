"""Masks: which keys a query may attend to. True = may attend; floats are added to the scaled scores."""

from __future__ import annotations

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["additive", "causal_mask"]


def additive(mask: Array) -> Array:
    """Return the mask as numbers to add to scores: a boolean one becomes 0 where True and -inf where False."""
    if mask.dtype == np.bool_:
        return np.where(mask, 0.0, -np.inf)
    return mask.astype(np.float64)


def causal_mask(queries: int, keys: int | None = None) -> Array:
    """Return the boolean mask (queries, keys) that lets each query see itself and what came before.

    With more keys than queries the queries are the last ones: row t sees keys up to keys - queries + t.
    """
    width = queries if keys is None else keys
    return np.tri(queries, width, width - queries, dtype=np.bool_)
