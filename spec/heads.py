"""Heads: how features are divided among them, and put together again."""

from __future__ import annotations

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["merge_heads", "split_heads"]


def split_heads(x: Array, heads: int) -> Array:
    """(…, T, H·d) → (…, H, T, d): head h owns the features h·d … (h+1)·d - 1."""
    return np.swapaxes(x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads), -2, -3)


def merge_heads(x: Array) -> Array:
    """(…, H, T, d) → (…, T, H·d), the inverse of split_heads."""
    swapped = np.swapaxes(x, -2, -3)
    return swapped.reshape(*swapped.shape[:-2], -1)
