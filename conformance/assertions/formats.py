"""Number formats narrower than NumPy's arithmetic: the numbers that each of them can represent."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["HALF", "narrowest", "rounded"]

HALF = ("float16", "bfloat16")
"""The formats of 16 bits."""


def rounded(values: Array, *forms: str) -> Array:
    """Return the nearest numbers that each of these formats can represent, as float64, ties to even.

    Numbers too large for a format become infinite. Whole numbers and masks stay as they are.
    """
    if values.dtype.kind != "f":
        return values
    for form in forms:
        values = _ROUNDED[form](values) if form in _ROUNDED else values
    return values.astype(np.float64)


def narrowest(forms: Collection[str]) -> tuple[str, ...]:
    """Return the formats to round to, so that all of these can represent a number: float32 and those of 16 bits."""
    return tuple(form for form in ("float32", "float16", "bfloat16") if form in forms or form == "float32")


def _float32(values: Array) -> Array:
    return values.astype(np.float32)


def _float16(values: Array) -> Array:
    with np.errstate(over="ignore"):
        return values.astype(np.float16)


def _bfloat16(values: Array) -> Array:
    """Round float32 to its upper 16 bits, ties to even; infinities and NaN stay."""
    narrow = values.astype(np.float32)
    bits = np.atleast_1d(narrow).view(np.uint32)
    with np.errstate(over="ignore"):
        upper = (bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isfinite(narrow), upper.view(np.float32).reshape(narrow.shape), narrow)


_ROUNDED = {"float32": _float32, "float16": _float16, "bfloat16": _bfloat16}
