"""The number that scores are divided by, computed from the output of two positions, whatever layer is around."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check
from conformkit.conformance.assertions.draws import Draw
from conformkit.spec.arrays import Array

__all__ = ["HeadProjection", "divisor", "telling_positions"]

HeadProjection = Callable[[Array], tuple[Array, Array, Array]]
"""From x (1, 2, D) to one head's queries, keys and values, each (2, width)."""


def telling_positions(
    draw: Draw, width: int, heads: HeadProjection, *, from_zero: bool = False
) -> tuple[Array, float, Array]:
    """Return two positions x (1, 2, width), how far their dot products with the second query differ, and their values.

    They are redrawn until that difference can be measured. With `from_zero` the first is a row of zeros: whatever turns
    its key, the dot product is 0.
    """
    for _ in range(200):
        x = draw.values(1, 2, width)
        if from_zero:
            x[:, 0] = 0.0
        q, k, v = heads(x)
        apart = float(q[1] @ (k[1] - k[0]))
        if 0.7 < abs(apart) / np.sqrt(q.shape[-1]) < 1.5:
            return x, apart, v
    raise NotApplicable("no two positions with measurable scores were found")


def divisor(out: Array, values: Array, apart: float) -> Array:
    """Return apart / log(w₁ / w₀), where out = w₀ values₀ + w₁ values₁ with weights that add up to 1."""
    direction = values[1] - values[0]
    share = float((out - values[0]) @ direction / (direction @ direction))
    check(f"the second of two values has weight {share:.3g}, expected one between 0 and 1", 0.0 < share < 1.0)
    return np.asarray(apart / np.log(share / (1.0 - share)))
