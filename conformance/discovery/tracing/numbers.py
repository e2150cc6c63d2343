"""Whether numbers are those of others: equal, equal columns in another order, equal but for a factor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["CLOSE", "by_text", "centered", "close", "columns", "factor"]

CLOSE = 1e-5
"""Relative to the largest: far above the rounding of float32, far below what one random number is near another."""


def close(one: Array, other: Array, within: float = CLOSE) -> bool:
    """Whether two arrays have one shape and, nearly, the same finite numbers."""
    if one.shape != other.shape or not one.size:
        return False
    largest = float(np.abs(other).max())
    return bool(np.isfinite(largest) and float(np.abs(one - other).max()) <= within * (largest + 1e-9))


def by_text(array: Array, batch: int, length: int) -> Iterator[Array]:
    """Yield the numbers as (B, T, features): as they are, and from positions first."""
    if array.size and array.size % (batch * length) == 0:
        yield array.reshape(batch, length, -1)
        yield array.reshape(length, batch, -1).swapaxes(0, 1)


def columns(whole: Array, part: Array, within: float = CLOSE) -> Array | None:
    """Return which column (last axis) of the whole each column of a part is; None if one is none of them."""
    if not whole.size or not part.size:
        return None
    a, b = whole.reshape(-1, whole.shape[-1]), part.reshape(-1, part.shape[-1])
    if len(a) != len(b):
        return None
    off = np.abs(a[:, :, None] - b[:, None, :]).max(axis=0)  # (whole, part)
    found = np.asarray(off.argmin(axis=0))
    enough = within * max(float(np.abs(b).max()), 1e-30)
    fits = bool((off[found, np.arange(b.shape[1])] <= enough).all()) and len(set(found.tolist())) == len(found)
    return found if fits else None


def factor(one: Array, other: Array) -> float | None:
    """Return the number by which the other is multiplied to give the first; None if there is none."""
    if one.shape != other.shape or not np.isfinite(one).all() or not np.isfinite(other).all():
        return None
    square = float((other * other).sum())
    found = float((one * other).sum()) / square if square else 0.0
    return found if found and close(found * other, one) else None


def centered(array: Array, seen: Array, axis: int) -> Array:
    """Subtract the mean of what is seen along an axis; 0 for what is not."""
    kept = np.where(seen, array, 0.0)
    many = np.maximum(seen.sum(axis=axis, keepdims=True), 1)
    return np.asarray(np.where(seen, kept - kept.sum(axis=axis, keepdims=True) / many, 0.0))
