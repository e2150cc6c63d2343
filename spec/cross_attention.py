"""Multi-head attention of one sequence to another: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.attention import scaled_dot_product_attention
from conformkit.spec.heads import merge_heads, split_heads
from conformkit.spec.layers import Weights, linear
from conformkit.spec.masks import additive
from conformkit.spec.positional_encoding import rotate
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.relative_positions import relative_bias
from conformkit.spec.scores import normalized, unscaled_queries
from conformkit.spec.variants import Variant

__all__ = ["CrossAttention", "CrossAttentionConstructor", "CrossAttentionModule", "attend"]


@runtime_checkable
class CrossAttention(Protocol[ArrayT]):
    """Let each row of one sequence attend, in num_heads subspaces, to the rows of another one.

    Construct: (d_model, num_heads, dropout=0.0).
    Shapes:    query (B, Tq, d_model), key and value (B, Tk, d_model) → (B, Tq, d_model).
    Mask:      boolean, broadcastable to (B, num_heads, Tq, Tk), as (B, 1, 1, Tk) for padding; True = may attend.
    Source:    Vaswani et al. 2017, §3.2.2 and §3.2.3.
    """

    def __call__(self, query: ArrayT, key: ArrayT, value: ArrayT, /, mask: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class CrossAttentionModule(CrossAttention[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, query: ArrayT, key: ArrayT, value: ArrayT, /, mask: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class CrossAttentionConstructor(Protocol[Built_co]):
    """The class CrossAttention, or a function that builds one."""

    def __call__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> Built_co: ...


def attend(
    weights: Weights, query: Array, key: Array, value: Array, mask: Array | None,
    *, num_heads: int, kv_heads: int, variant: Variant, turned: bool = False, causal: bool = False,
) -> Array:  # fmt: skip
    """Return the heads' attention of query (B, Tq, D) to key and value (B, Tk, D), projected: (B, Tq, D).

    `turned`: queries and keys are of one sequence, whose positions act within attention if the variant has such;
    `causal`: all buckets of relative positions are for earlier keys. The mask hides, here as elsewhere.
    """
    q = split_heads(normalized(weights, "q_norm", linear(weights, "q", query), num_heads, variant), num_heads)
    k = split_heads(normalized(weights, "k_norm", linear(weights, "k", key), kv_heads, variant), kv_heads)
    v = split_heads(linear(weights, "v", value), kv_heads)  # (B, Hkv, Tk, d)
    if turned and variant.positions == "rotary":
        q, k = rotate(q, variant), rotate(k, variant)
    k, v = (np.repeat(part, num_heads // kv_heads, axis=-3) for part in (k, v))  # (B, H, Tk, d)
    if turned and variant.positions == "relative":
        bias = relative_bias(weights["relative.weight"], query.shape[-2], variant, causal=causal)  # (H, T, T)
        mask = bias if mask is None else np.asanyarray(bias + additive(mask))
    q = unscaled_queries(q, variant)
    mixed = merge_heads(scaled_dot_product_attention(q, k, v, mask, cap=variant.score_cap))
    return linear(weights, "out", mixed) if variant.output_projection else mixed
