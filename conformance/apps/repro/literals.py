"""Arrays as readable Python expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["array_text", "nested"]


_WIDTH = 112
_SHORT = 6
"""Maximum length of a number that needs no shortening."""


def array_text(array: Array, *, torch: bool) -> str:
    """Return an expression for exactly this array, in torch or in NumPy."""
    library = "torch" if torch else "np"
    known = _well_known(array, library)
    if known:
        return known
    rounded = _as_float32(array)
    if rounded is None:
        make = "torch.tensor" if torch else "np.array"
        return f"{make}({nested(array, library)}, dtype={_dtype(array, library)})"
    if torch:
        return f"torch.tensor({nested(rounded, library)}, dtype=torch.float32).double()"
    return f"np.array({nested(rounded, library)}, np.float32).astype(float)"


def nested(array: Array, library: str, indent: int = 0) -> str:
    """Return nested lists with the shortest numbers that have the same value, one row per line if they are long."""
    flat = _nested(array, lambda number: _number(number, library))
    if len(flat) + indent <= _WIDTH or array.ndim < 2:
        return flat
    margin = " " * (indent + 4)
    rows = "".join(f"{margin}{nested(row, library, indent + 4)},\n" for row in array)
    return f"[\n{rows}{' ' * indent}]"


def _nested(array: Array, text: Callable[[Any], str]) -> str:
    if array.ndim == 0:
        return text(array[()])
    return f"[{', '.join(_nested(part, text) for part in array)}]"


def _number(number: Any, library: str) -> str:
    if np.issubdtype(type(number), np.floating):
        if np.isnan(number):
            return f"{library}.nan"
        if np.isinf(number):
            return f"{'-' if number < 0 else ''}{library}.inf"
        usual = not number or 1e-4 <= abs(number) < 1e9
        write = np.format_float_positional if usual else np.format_float_scientific
        return str(write(number, trim="0"))
    return str(number)


def _as_float32(array: Array) -> Array | None:
    """Return a float64 array as float32, if that loses nothing and is shorter."""
    if array.dtype != np.float64 or all(len(str(number)) <= _SHORT for number in array.ravel().tolist()):
        return None
    with np.errstate(over="ignore"):
        rounded = array.astype(np.float32)
    same = np.array_equal(rounded.astype(np.float64), array, equal_nan=True)
    return rounded if same else None


def _dtype(array: Array, library: str) -> str:
    if array.dtype == np.bool_:
        return "bool" if library == "np" else "torch.bool"
    return f"{library}.{array.dtype.name}"


def _well_known(array: Array, library: str) -> str:
    """Return an expression that is shorter than the numbers: for constants, and for the causal mask."""
    dtype = f", dtype={_dtype(array, library)}"
    if not array.size or (array.size > 3 and np.all(array == array.flat[0])):
        value = _number(array.flat[0], library) if array.size else "0"
        return f"{library}.full({array.shape}, {value}{dtype})"
    if array.dtype == np.bool_ and array.ndim > 1 and np.array_equal(array, np.tril(np.ones_like(array))):
        ones = f"{library}.ones({array.shape}{dtype})"
        return f"{ones}.tril()" if library == "torch" else f"np.tril({ones})"
    return ""
