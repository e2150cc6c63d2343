"""The position-wise feed-forward network: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights, activate, linear, under
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = ["FeedForward", "FeedForwardConstructor", "FeedForwardModule", "expert_weights", "feed_forward", "gated"]


@runtime_checkable
class FeedForward(Protocol[ArrayT]):
    """Widen each position's features to d_ff, apply a nonlinearity, narrow them again.

    Construct: (d_model, d_ff, dropout=0.0).
    Shapes:    (B, T, d_model) → (B, T, d_model).
    Source:    Vaswani et al. 2017, §3.3.
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
    """Return down(act(up x)), or down(act(gate x) · up x) when gated, or what experts give; x (…, D) → (…, D)."""
    if variant.experts:
        return _experts(weights, x, variant)
    return _network(weights, x, variant)


def expert_weights(logits: Array, variant: Variant) -> Array:
    """Return how much of each expert is added, (…, E): 0 where it is not among the largest logits.

    Source: Shazeer et al. 2017, eq. 3 to 5 without noise; Fedus et al. 2022, §2.1 for the softmax over all experts.
    """
    chances = np.exp(logits - logits.max(axis=-1, keepdims=True))  # in their order: where two round to one, so may code
    order = np.argsort(-chances, axis=-1, kind="stable")[..., : variant.experts_active]
    selected = np.zeros(logits.shape, np.bool_)
    np.put_along_axis(selected, order, np.True_, axis=-1)
    kept = np.where(selected, logits, -np.inf) if variant.expert_weights == "selected" else logits
    parts = np.exp(kept - logits.max(axis=-1, keepdims=True))
    return np.where(selected, parts / parts.sum(axis=-1, keepdims=True), 0.0)


def _experts(weights: Weights, x: Array, variant: Variant) -> Array:
    """Return Σ_e g_e(x) FFN_e(x), plus what the shared expert gives."""
    share = expert_weights(linear(weights, "router", x), variant)  # (…, E)
    own = [name for name in weights if not name.startswith("router.") and not name.startswith("shared.")]
    mixed = np.zeros_like(x)
    for number in range(variant.experts):
        given = _network({name: weights[name][number] for name in own}, x, variant)
        mixed = mixed + share[..., number, None] * given
    return np.asanyarray(mixed + _network(under(weights, "shared"), x, variant) if variant.shared_expert else mixed)


def gated(gate: Array, up: Array, variant: Variant) -> Array:
    """Return σ(gate) ⊙ up, both within the variant's limits, and up plus 1 where it has an offset."""
    if variant.gate_limit:
        gate, up = np.minimum(gate, variant.gate_limit), np.clip(up, -variant.gate_limit, variant.gate_limit)
    return np.asanyarray(activate(gate, variant) * (up + variant.gate_offset))


def _network(weights: Weights, x: Array, variant: Variant) -> Array:
    if variant.gated:
        gate, up = linear(weights, "gate", x), linear(weights, "up", x)
        hidden = gated(gate, up, variant)
    else:
        hidden = activate(linear(weights, "up", x), variant)
    return linear(weights, "down", np.asanyarray(hidden))
