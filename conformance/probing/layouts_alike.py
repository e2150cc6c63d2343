"""Whether one array could be another one that is laid out anew, or is about the same positions."""

from __future__ import annotations

import math
import operator
from itertools import accumulate

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["laid_out_anew", "tells_of_positions"]


_AXES = 3
"""A batch of outputs has at least these: batch, position, feature."""


def laid_out_anew(one: Array, other: Array) -> bool:
    """Whether the axes of an array are those of another one in another order, or with neighbors joined."""
    longer, shorter = sorted((_extents(one), _extents(other)), key=len, reverse=True)
    joined = set(accumulate(shorter, operator.mul)) <= set(accumulate(longer, operator.mul))
    return math.prod(longer) == math.prod(shorter) and (joined or sorted(longer) == sorted(shorter))


def tells_of_positions(one: Array, output: Array) -> bool:
    """Whether an array may be meant as an output: it has numbers for each of its positions, or for one of its rows.

    So may one that differs from it in the extent of one axis. Weights of attention, which are probabilities, may not,
    nor may one number for each position.
    """
    if not np.issubdtype(one.dtype, np.floating) or output.ndim < _AXES:
        return False
    row = one.shape == output.shape[1:]
    whole = one.ndim >= _AXES and one.shape[: output.ndim - 1] == output.shape[:-1] and one.shape[-1] > 1
    odd = sum(map(operator.ne, one.shape, output.shape))
    whole = whole or (one.ndim == output.ndim and odd <= 1 < min(one.shape, default=0))
    weights = bool(np.all(one >= 0)) and np.allclose(one.sum(-1), 1, atol=1e-2)
    return (row or whole) and not weights


def _extents(array: Array) -> list[int]:
    return [extent for extent in array.shape if extent != 1]
