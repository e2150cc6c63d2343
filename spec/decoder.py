"""Decoder layers and their stack: Protocols and oracles."""

from __future__ import annotations

from functools import partial
from typing import Protocol, runtime_checkable

from conformkit.spec.arrays import Array
from conformkit.spec.cross_attention import attend
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.layers import Weights, normalize, under
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.relative_positions import shared_table
from conformkit.spec.variants import Variant

__all__ = [
    "Decoder", "DecoderConstructor", "DecoderLayer", "DecoderLayerConstructor", "DecoderLayerModule", "DecoderModule",
    "decoder", "decoder_layer",
]  # fmt: skip


@runtime_checkable
class DecoderLayer(Protocol[ArrayT]):
    """Self-attention over the target so far, attention to the memory, a feed-forward network.

    Construct: (d_model, num_heads, d_ff, dropout=0.0).
    Shapes:    x (B, T, d_model), memory (B, S, d_model) → (B, T, d_model).
    Masks:     boolean, True = may attend; tgt_mask broadcastable to (B, num_heads, T, T), as (B, 1, T, T) for causality
               and padding, memory_mask to (B, num_heads, T, S), as (B, 1, 1, S) for padding.
    Source:    Vaswani et al. 2017, §3.1.
    """

    def __call__(
        self, x: ArrayT, memory: ArrayT, /, tgt_mask: ArrayT | None = None, memory_mask: ArrayT | None = None
    ) -> ArrayT: ...


@runtime_checkable
class DecoderLayerModule(DecoderLayer[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(
        self, x: ArrayT, memory: ArrayT, /, tgt_mask: ArrayT | None = None, memory_mask: ArrayT | None = None
    ) -> ArrayT: ...


@runtime_checkable
class DecoderLayerConstructor(Protocol[Built_co]):
    """The class DecoderLayer, or a function that builds one."""

    def __call__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0) -> Built_co: ...


@runtime_checkable
class Decoder(Protocol[ArrayT]):
    """Decoder layers one after the other, all on the same memory, then a norm if the variant has one.

    Construct: (d_model, num_heads, d_ff, num_layers, dropout=0.0).
    Shapes:    x (B, T, d_model), memory (B, S, d_model) → (B, T, d_model).
    Masks:     as DecoderLayer; every layer gets them.
    Source:    Vaswani et al. 2017, §3.1.
    """

    def __call__(
        self, x: ArrayT, memory: ArrayT, /, tgt_mask: ArrayT | None = None, memory_mask: ArrayT | None = None
    ) -> ArrayT: ...


@runtime_checkable
class DecoderModule(Decoder[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(
        self, x: ArrayT, memory: ArrayT, /, tgt_mask: ArrayT | None = None, memory_mask: ArrayT | None = None
    ) -> ArrayT: ...


@runtime_checkable
class DecoderConstructor(Protocol[Built_co]):
    """The class Decoder, or a function that builds one."""

    def __call__(self, d_model: int, num_heads: int, d_ff: int, num_layers: int, dropout: float = 0.0) -> Built_co: ...


def decoder_layer(
    weights: Weights, x: Array, memory: Array, tgt_mask: Array | None, memory_mask: Array | None,
    *, num_heads: int, kv_heads: int, variant: Variant,
) -> Array:  # fmt: skip
    """pre: x' = x + A(N₁ x), x" = x' + C(N₂ x', M), y = x" + F(N₃ x"); post: the norms after the sums."""
    heads = partial(attend, num_heads=num_heads, kv_heads=kv_heads, variant=variant)

    def look(z: Array) -> Array:
        return heads(under(weights, "self_attention"), z, z, z, tgt_mask, turned=True, causal=True)

    def read(z: Array) -> Array:
        return heads(under(weights, "cross_attention"), z, memory, memory, memory_mask)

    def feed(z: Array) -> Array:
        return feed_forward(under(weights, "feed_forward"), z, variant=variant)

    for name, sublayer in (("norm1", look), ("norm2", read), ("norm3", feed)):
        if variant.placement == "post":
            x = normalize(weights, name, x + sublayer(x), variant)
        else:
            x = x + sublayer(normalize(weights, name, x, variant))
    return x


def decoder(
    weights: Weights, x: Array, memory: Array, tgt_mask: Array | None, memory_mask: Array | None,
    *, num_layers: int, num_heads: int, kv_heads: int, variant: Variant,
) -> Array:  # fmt: skip
    """Return the target's features (B, T, D) of embedded positions (B, T, D), given the memory (B, S, D)."""
    table = shared_table(weights, "self_attention", variant)
    for layer in range(num_layers):
        inner = {**under(weights, f"layers.{layer}"), **table}
        x = decoder_layer(
            inner, x, memory, tgt_mask, memory_mask, num_heads=num_heads, kv_heads=kv_heads, variant=variant
        )
    return normalize(weights, "norm", x, variant) if variant.final_norm else x
