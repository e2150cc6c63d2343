"""Single-head self-attention: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from conformkit.spec.arrays import Array
from conformkit.spec.attention import scaled_dot_product_attention
from conformkit.spec.layers import Weights, linear
from conformkit.spec.masks import causal_mask
from conformkit.spec.protocols import ArrayT, Built_co

__all__ = ["SelfAttention", "SelfAttentionConstructor", "SelfAttentionModule", "self_attention"]


@runtime_checkable
class SelfAttention(Protocol[ArrayT]):
    """Attend within one sequence through three linear maps, without an output projection.

    Construct: (d_model, d_k=None, d_v=None, causal=True); d_k and d_v default to d_model.
    Shapes:    (B, T, d_model) → (B, T, d_v).
    Source:    Vaswani et al. 2017, §3.2.3.
    """

    def __call__(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class SelfAttentionModule(SelfAttention[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class SelfAttentionConstructor(Protocol[Built_co]):
    """The class SelfAttention, or a function that builds one."""

    def __call__(
        self, d_model: int, d_k: int | None = None, d_v: int | None = None, causal: bool = True,
    ) -> Built_co: ...  # fmt: skip


def self_attention(weights: Weights, x: Array, *, causal: bool) -> Array:
    """Return attention of x Wqᵀ to x Wkᵀ over x Wvᵀ; x (B, T, D) → (B, T, dv)."""
    q, k, v = (linear(weights, name, x) for name in "qkv")
    return scaled_dot_product_attention(q, k, v, causal_mask(x.shape[-2]) if causal else None)
