"""Whether what explains a wrong result gives its numbers: how they are compared, and how near they have to be."""

from __future__ import annotations

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["FINEST", "agree", "closeness", "in_numbers"]

FINEST = 1e-6
"""An explanation may be off by this share of the largest number,"""
_ROOM = 4.0
"""or by so many times what the check allows."""


def in_numbers(got: Array, want: Array) -> tuple[Array, Array] | None:
    """Return two results of one shape in float64, truth values too; None where one has other than finite numbers."""
    if got.shape != want.shape or {got.dtype.kind, want.dtype.kind} - set("biuf"):
        return None
    ours, theirs = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return (ours, theirs) if np.isfinite(ours).all() and np.isfinite(theirs).all() else None


def closeness(want: Array, allowed: float) -> float:
    """Return how far from the numbers of a result its explanation may be, where the check allows so much."""
    return max(allowed * _ROOM, FINEST * float(np.abs(want).max()), 1e-300)


def agree(one: Array, other: Array, close: float) -> bool:
    """Whether no two numbers are further apart than that."""
    return bool((np.abs(one - other) <= close).all())
