"""Random weights with which any transformer computes something: neither zero nor overflowing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.spec.arrays import Array

__all__ = ["noise", "placed_noise"]

_SCALES = "norm.weight", "norm1.weight", "norm2.weight", "norm3.weight", "_after.weight"


def placed_noise(
    bound: Bound, sizes: Mapping[str, Any], listed: Mapping[str, tuple[int, ...]], draw: Draw, gain: float
) -> dict[str, Array] | None:
    """Draw canonical weights and arrange them by the binding's rules.

    `listed` has the shapes of what is trainable; None if the arranged weights do not fill exactly that.
    """
    try:
        wanted = bound.component.parameters(sizes, bound.variant)
        scales = _SCALES if bound.variant.norm_weight == "scale" else ()
        weights = {n: noise(draw, p.shape, gain, n.endswith(scales)) for n, p in wanted.items()}
        placed = bound.to_implementation(weights, sizes)
    except (NoSizeError, PatternError):  # sizes differ from their declaration
        return None
    return placed if {name: a.shape for name, a in placed.items() if name in listed} == listed else None


def noise(draw: Draw, shape: Sequence[int], gain: float, around_one: bool | None) -> Array:
    """Draw vectors of small numbers, or around 1 if they scale, or matrices that preserve the size of their inputs."""
    if len(shape) < 2:
        return draw.values(*shape, scale=0.3) + float(around_one or False)
    width = shape[-1] if len(shape) == 2 else shape[-2]
    return draw.values(*shape, scale=gain * 1.2 / np.sqrt(width))
