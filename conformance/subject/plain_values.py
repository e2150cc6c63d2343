"""Comparing what functions return: numbers, strings, and lists and tuples of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["alike"]


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same, numbers up to float32's rounding."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if _is_row(one) and _is_row(other):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            return False
    try:
        return bool(np.allclose(one, other, rtol=1e-3, atol=1e-6, equal_nan=True))
    except (TypeError, ValueError):
        return bool(np.all(one == other))


def _is_row(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
