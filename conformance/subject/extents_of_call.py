"""The sizes of one call: those of the component, and those of its inputs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from conformkit.spec.arrays import Array

__all__ = ["extents_of_call"]

_CHOICES = frozenset({"causal", "dropout", "pad_id"})
_KEYS = frozenset({"k", "key", "memory", "src"})
"""Inputs whose positions are attended to by those of another one."""


def extents_of_call(sizes: Mapping[str, Any], names: Sequence[str], inputs: Sequence[Array | None]) -> dict[str, int]:
    """Return the constructor's sizes, and those of ids (B, T) or vectors (…, T, D): batch, tokens, keys, d_k, d_v."""
    found = {name: int(size) for name, size in sizes.items() if name not in _CHOICES and size is not None}
    for name, array in zip(names, inputs, strict=False):
        if array is None or "mask" in name or array.ndim < 2:
            continue
        if name == "images":
            found["batch"] = len(array)
            continue
        ids = array.dtype.kind in "iu"
        leading, length = (array.shape[:-1], array.shape[-1]) if ids else (array.shape[:-2], array.shape[-2])
        found.setdefault("batch", math.prod(leading))
        found["keys" if name in _KEYS else "tokens"] = length
        if name in {"q", "v"}:
            found["d_k" if name == "q" else "d_v"] = array.shape[-1]
            found["tokens"] = inputs[0].shape[-2] if inputs[0] is not None else length
    return found
