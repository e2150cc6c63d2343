"""Strings, numbers and lists that tools return: checks of their types before anything is compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import Compared, check, check_shape
from conformkit.spec.arrays import Array
from conformkit.spec.tolerances import tolerance

__all__ = ["TOLERANCE", "close", "ids", "number", "numbers", "of_numbers", "several", "shown", "text"]


TOLERANCE = tolerance("float32")
"""The relative error allowed: tools get float32, and most compute in it."""


def number(label: str, value: Any) -> float:
    """Return one finite number, alone or in lists of one."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    check(
        f"{label} is {kind(value)}, expected a number", isinstance(value, int | float) and not isinstance(value, bool)
    )
    check(f"{label} is {value}, expected a finite number", math.isfinite(value))
    return float(value)


def close(label: str, value: Any, want: float, *, allowed: float = TOLERANCE, scale: float = 0.0) -> None:
    """Check one number, up to a relative error; `scale` replaces a smaller wanted number."""
    got = number(label, value)
    error = allowed * max(abs(want), scale, 1e-30)
    both = Compared(np.asarray(got), np.asarray(want), error)
    sentence = f"{label} is {got:.7g}, expected {want:.7g}, relative tolerance {allowed:.0e}"
    check(sentence, abs(got - want) <= error, compared=both)


def numbers(label: str, value: Any, shape: tuple[int, ...] | None = None) -> Array:
    """Return numbers in nested lists as float64."""
    array = _array(label, value, "numbers")
    check(f"{label} holds {kind(value)}, expected numbers", array.dtype.kind in "if")
    if shape is not None:
        check_shape(label, array, shape)
    return array.astype(np.float64)


def ids(label: str, value: Any, shape: tuple[int, ...] | None = None) -> Array:
    """Return whole numbers in nested lists as int64: numbers that an embedding can look up."""
    if value == []:
        array = np.empty(0, np.int64)
    else:
        array = _array(label, value, "ids")
        check(f"{label} holds {kind(value)}, expected whole numbers", array.dtype.kind == "i")
    if shape is not None:
        check_shape(label, array, shape)
    return array


def text(label: str, value: Any) -> str:
    """Return a string."""
    check(f"{label} is {kind(value)}, expected a string", isinstance(value, str))
    return str(value)


def several(label: str, value: Any, count: int) -> list[Any]:
    """Return the given number of values, from a list or a dict."""
    parts = list(value.values()) if isinstance(value, dict) else value
    fits = isinstance(parts, list) and len(parts) == count
    got = f"{len(parts)} values" if isinstance(parts, list) else kind(value)
    check(f"{label} returned {got}, expected {count}", fits)
    return list(parts)


def kind(value: Any) -> str:
    """Name the type of a value; for a list, the type of its first element."""
    depth = 0
    while isinstance(value, list) and value:
        value, depth = value[0], depth + 1
    name = {"str": "string", "NoneType": "None"}.get(type(value).__name__, type(value).__name__)
    return f"{'list of ' * depth}{name}"


def shown(value: str, most: int = 60) -> str:
    """Quote a string, shortened if long, with escapes for unprintable characters."""
    return ascii(value if len(value) <= most else value[:most] + "…") if not value.isprintable() else repr(value[:most])


def of_numbers(value: Any) -> bool:
    """Whether a value is a number or a boolean, or consists of nested lists of them.

    NumPy makes all strings of an array as long as the longest: a long one and many short ones could exhaust memory.
    """
    if isinstance(value, list):
        return set(map(type, value)) <= {bool, int, float} or all(map(of_numbers, value))
    return isinstance(value, int | float)


def _array(label: str, value: Any, what: str) -> Array:
    check(f"{label} holds {kind(value)}, expected {what}", of_numbers(value))
    try:
        array = np.asarray(value if isinstance(value, list) else [value])
    except (ValueError, OverflowError):
        array = np.empty(0, object)
    regular = array.dtype != object
    check(f"{label} is {kind(value)} of unequal length, expected an array of {what}", regular)
    return array if isinstance(value, list) else array.reshape(())
