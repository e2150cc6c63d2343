"""The position-wise feed-forward network: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights, activate, linear
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = ["FeedForward", "FeedForwardConstructor", "FeedForwardModule", "feed_forward"]


@runtime_checkable
class FeedForward(Protocol[ArrayT]):
    """Widen each position's features to d_ff, apply a nonlinearity, narrow them again.

    Construct: (d_model, d_ff, dropout=0.0).
    Shapes:    (B, T, d_model) → (B, T, d_model).
    Source:    Vaswani et al. 2017, §3.3; handout §6.4.
    """

    def __call__(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class FeedForwardModule(FeedForward[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class FeedForwardConstructor(Protocol[Built_co]):
    """The class FeedForward, or a function that builds one."""

    def __call__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> Built_co: ...


def feed_forward(weights: Weights, x: Array, *, variant: Variant) -> Array:
    """Return down(act(up x)), or down(act(gate x) · up x) when gated; x (…, D) → (…, D)."""
    if variant.gated:
        hidden = activate(linear(weights, "gate", x), variant) * linear(weights, "up", x)
    else:
        hidden = activate(linear(weights, "up", x), variant)
    return linear(weights, "down", np.asanyarray(hidden))
