"""The results of functions that build masks, read as who may attend to what, whatever their format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.values import kind, numbers, of_numbers, several
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array

__all__ = ["HIDING", "Builder", "masks_of", "of_keys", "of_pairs"]


_LOW = -1e3
"""Numbers added to hide a key are below this; half precision reaches -65504."""


HIDING: Mapping[str, Mapping[str, Any]] = {
    "create_padding_mask": {"ids": np.array([[1, 0]])},
    "create_causal_mask": {"size": 2},
    "create_masks": {"src": np.array([[1, 0]]), "tgt": np.array([[1, 0]])},
}
"""By builder, a call whose masks hide something."""


class Builder:
    """A tool that returns masks, and which entries mean "may attend", as declared."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.form = tool.bound.mask

    def __call__(self, label: str, value: Any) -> Array:
        """Return a mask as booleans, True = may attend, in its own shape."""
        array = raw(label, value)
        added = array.dtype.kind == "f" and not (array == 1.0).any()
        if added and not array.any() and self.form.kind != "float":
            added = not self._counts()
        if not added and set(np.unique(array)) <= {0, 1}:
            return np.asarray(array == 1 if self.form.true == "attend" else array == 0)
        check(f"{label} holds {_examples(array)}, expected booleans, 0 and 1, or 0 and a large negative number",
              bool(((array == 0.0) | (array < _LOW)).all()))  # fmt: skip
        return np.asarray(array == 0.0)

    def _counts(self) -> bool:
        """Whether its floats are 0 and 1, where something is hidden and something is not: zeros alone say nothing."""
        return 1.0 in _entries(self.tool(**HIDING[self.tool.name]))

    def check_kind(self, label: str, value: Any) -> None:
        """Check that it has the declared kind, booleans if none is declared."""
        found = {"b": "bool", "i": "int", "f": "float"}[raw(label, value).dtype.kind]
        wanted = {"bool": "truth values", "int": "0 and 1", "float": "0 and -inf"}[self.form.kind]
        check(f"{label} is made of {kind(value)}, expected {wanted}", found == self.form.kind)


def raw(label: str, value: Any) -> Array:
    """Return booleans or numbers in nested lists as an array."""
    try:
        array = np.asarray(value if of_numbers(value) else None)
    except (ValueError, OverflowError):
        array = np.empty(0, object)
    check(f"{label} is {kind(value)}, expected a mask", isinstance(value, list) and array.dtype.kind in "bif")
    return array


def of_keys(label: str, mask: Array, rows: int, keys: int) -> Array:
    """Return which keys are visible, (rows, keys); the mask must be the same along axes between these."""
    fits = mask.ndim >= 2 and (mask.shape[0], mask.shape[-1]) == (rows, keys) and mask.size
    check(f"{label} has shape {mask.shape}, expected ({rows}, 1, 1, {keys})", bool(fits))
    flat = mask.reshape(rows, -1, keys)
    same = bool((flat == flat[:, :1]).all())
    check(f"{label}, of shape {mask.shape}, is not the same for every query", same)
    return np.asarray(flat[:, 0])


def of_pairs(label: str, mask: Array, rows: int, size: int) -> Array:
    """Return who sees whom, (rows, size, size); between rows and queries there may be further axes."""
    want = (rows, 1, size, size)
    fits = mask.ndim >= 3 and (mask.shape[0], *mask.shape[-2:]) == (rows, size, size)
    check(f"{label} has shape {mask.shape}, expected {want}", bool(fits))
    flat = mask.reshape(rows, -1, size, size)
    check(f"{label}, of shape {mask.shape}, is not the same for every head", bool((flat == flat[:, :1]).all()))
    return np.asarray(flat[:, 0])


def masks_of(value: Any) -> list[Any]:
    """Return the masks of source and target, and the memory's where there is one."""
    if isinstance(value, Mapping):
        names = [name for name in ("src_mask", "tgt_mask", "memory_mask") if name in value]
        if names[:2] == ["src_mask", "tgt_mask"]:
            return [value[name] for name in names]
    if isinstance(value, list) and len(value) == 3:
        return list(value)
    return several("create_masks", value, 2)


def _examples(array: Array) -> str:
    return ", ".join(f"{x:g}" for x in np.unique(numbers("the mask", array.tolist()))[:3])


def _entries(value: Any) -> list[Any]:
    """Return the entries of masks, in lists or by name."""
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else None
    return [value] if parts is None else [entry for part in parts for entry in _entries(part)]
