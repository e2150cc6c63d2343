"""Multi-head self-attention: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.attention import scaled_dot_product_attention
from conformkit.spec.heads import merge_heads, split_heads
from conformkit.spec.latent_attention import latent_heads
from conformkit.spec.layers import Weights, linear, sigmoid
from conformkit.spec.masks import additive
from conformkit.spec.positional_encoding import rotate
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.relative_positions import relative_bias
from conformkit.spec.scores import normalized, unscaled_queries, visible
from conformkit.spec.variants import Variant

__all__ = [
    "MultiHeadAttention", "MultiHeadAttentionConstructor", "MultiHeadAttentionModule", "multi_head_attention",
]  # fmt: skip


@runtime_checkable
class MultiHeadAttention(Protocol[ArrayT]):
    """Attend in num_heads parallel subspaces of width d_model / num_heads, then mix them with one linear map.

    Construct: (d_model, num_heads, dropout=0.0, causal=True).
    Shapes:    (B, T, d_model) → (B, T, d_model).
    Raises:    should raise at construction when num_heads does not divide d_model; no feature may be left out.
    Source:    Vaswani et al. 2017, §3.2.2.
    """

    def __call__(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class MultiHeadAttentionModule(MultiHeadAttention[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class MultiHeadAttentionConstructor(Protocol[Built_co]):
    """The class MultiHeadAttention, or a function that builds one."""

    def __call__(self, d_model: int, num_heads: int, dropout: float = 0.0, causal: bool = True) -> Built_co: ...


def multi_head_attention(
    weights: Weights, x: Array, *, num_heads: int, kv_heads: int, causal: bool, variant: Variant
) -> Array:
    """Return the heads' attention, concatenated and projected; x (B, T, D) → (B, T, D).

    With fewer key/value heads than heads, each serves num_heads / kv_heads consecutive query heads.
    """
    if variant.latent == "0":
        q, k, v = _projected(weights, x, num_heads, kv_heads, variant)
    else:
        q, k, v = latent_heads(weights, x, num_heads, variant)
    q = unscaled_queries(q, variant)
    mask = visible(x.shape[-2], num_heads, variant, causal=causal)
    if variant.positions == "relative":
        bias = relative_bias(weights["relative.weight"], x.shape[-2], variant, causal=causal)  # (H, T, T)
        mask = bias if mask is None else np.asanyarray(bias + additive(mask))
    sinks = weights["sinks.weight"] if variant.sinks else None
    mixed = merge_heads(scaled_dot_product_attention(q, k, v, mask, cap=variant.score_cap, sinks=sinks))
    if variant.output_gate != "none":
        mixed = _gated(mixed, linear(weights, "output_gate", x))
    return linear(weights, "out", mixed) if variant.output_projection else mixed


def _projected(
    weights: Weights, x: Array, num_heads: int, kv_heads: int, variant: Variant
) -> tuple[Array, Array, Array]:
    """Return queries, keys and values of x (B, T, D), each (B, H, T, d)."""
    q = split_heads(
        normalized(weights, "q_norm", linear(weights, "q", x), num_heads, variant), num_heads
    )  # (B, H, T, d)
    k = split_heads(
        normalized(weights, "k_norm", linear(weights, "k", x), kv_heads, variant), kv_heads
    )  # (B, Hkv, T, d)
    v = split_heads(linear(weights, "v", x), kv_heads)  # (B, Hkv, T, d)
    if variant.positions == "rotary":
        q, k = rotate(q, variant), rotate(k, variant)
    k, v = (np.repeat(part, num_heads // kv_heads, axis=-3) for part in (k, v))  # (B, H, T, d)
    return q, k, v


def _gated(mixed: Array, logits: Array) -> Array:
    """Return mixed ⊙ σ(logits), (…, T, H·d); logits have as many features, or one for each head."""
    share = sigmoid(logits)
    return np.asanyarray(mixed * np.repeat(share, mixed.shape[-1] // share.shape[-1], axis=-1))
