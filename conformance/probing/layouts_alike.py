"""Whether one array could be another one that is laid out anew."""

from __future__ import annotations

import math
import operator
from itertools import accumulate

from conformkit.spec.arrays import Array

__all__ = ["laid_out_anew"]


def laid_out_anew(one: Array, other: Array) -> bool:
    """Whether the axes of an array are those of another one in another order, or with neighbors joined."""
    longer, shorter = sorted((_extents(one), _extents(other)), key=len, reverse=True)
    joined = set(accumulate(shorter, operator.mul)) <= set(accumulate(longer, operator.mul))
    return math.prod(longer) == math.prod(shorter) and (joined or sorted(longer) == sorted(shorter))


def _extents(array: Array) -> list[int]:
    return [extent for extent in array.shape if extent != 1]
