"""The position-wise feed-forward network: Protocol and oracle."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights, activate, linear
from conformkit.spec.variants import Variant

__all__ = ["FeedForward", "feed_forward"]


class FeedForward(Protocol):
    """Widen each position's features to d_ff, apply a nonlinearity, narrow them again.

    Construct: (d_model, d_ff, dropout=0.0).
    Shapes:    (B, T, d_model) → (B, T, d_model).
    Source:    Vaswani et al. 2017, §3.3; handout §6.4.
    """

    def __call__(self, x: Any) -> Any: ...


def feed_forward(weights: Weights, x: Array, *, variant: Variant) -> Array:
    """Return down(act(up x)), or down(act(gate x) · up x) when gated; x (…, D) → (…, D)."""
    if variant.gated:
        hidden = activate(linear(weights, "gate", x), variant) * linear(weights, "up", x)
    else:
        hidden = activate(linear(weights, "up", x), variant)
    return linear(weights, "down", np.asarray(hidden))
