"""Encoder layers and their stack: Protocols and oracles."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from conformkit.spec.arrays import Array
from conformkit.spec.cross_attention import attend
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.layers import Weights, normalize, under
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.relative_positions import shared_table
from conformkit.spec.variants import Variant

__all__ = [
    "Encoder", "EncoderConstructor", "EncoderLayer", "EncoderLayerConstructor", "EncoderLayerModule", "EncoderModule",
    "encoder", "encoder_layer",
]  # fmt: skip


@runtime_checkable
class EncoderLayer(Protocol[ArrayT]):
    """Self-attention over the whole source, then a feed-forward network, each with a norm and a residual path.

    Construct: (d_model, num_heads, d_ff, dropout=0.0).
    Shapes:    (B, S, d_model) → (B, S, d_model).
    Mask:      boolean, broadcastable to (B, num_heads, S, S), as (B, 1, 1, S) for padding; True = may attend.
    Source:    Vaswani et al. 2017, §3.1.
    """

    def __call__(self, x: ArrayT, /, mask: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class EncoderLayerModule(EncoderLayer[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, x: ArrayT, /, mask: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class EncoderLayerConstructor(Protocol[Built_co]):
    """The class EncoderLayer, or a function that builds one."""

    def __call__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0) -> Built_co: ...


@runtime_checkable
class Encoder(Protocol[ArrayT]):
    """Encoder layers one after the other, then a norm if the variant has one.

    Construct: (d_model, num_heads, d_ff, num_layers, dropout=0.0).
    Shapes:    (B, S, d_model) → (B, S, d_model), the memory.
    Mask:      as EncoderLayer; every layer gets it.
    Source:    Vaswani et al. 2017, §3.1.
    """

    def __call__(self, x: ArrayT, /, mask: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class EncoderModule(Encoder[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, x: ArrayT, /, mask: ArrayT | None = None) -> ArrayT: ...


@runtime_checkable
class EncoderConstructor(Protocol[Built_co]):
    """The class Encoder, or a function that builds one."""

    def __call__(self, d_model: int, num_heads: int, d_ff: int, num_layers: int, dropout: float = 0.0) -> Built_co: ...


def encoder_layer(
    weights: Weights, x: Array, mask: Array | None, *, num_heads: int, kv_heads: int, variant: Variant
) -> Array:
    """pre: x' = x + A(N₁ x), y = x' + F(N₂ x'); post: x' = N₁(x + A x), y = N₂(x' + F x')."""

    def look(z: Array) -> Array:
        inner = under(weights, "attention")
        return attend(inner, z, z, z, mask, num_heads=num_heads, kv_heads=kv_heads, variant=variant, turned=True)

    def feed(z: Array) -> Array:
        return feed_forward(under(weights, "feed_forward"), z, variant=variant)

    if variant.placement == "post":
        x = normalize(weights, "norm1", x + look(x), variant)
        return normalize(weights, "norm2", x + feed(x), variant)
    x = x + look(normalize(weights, "norm1", x, variant))
    return x + feed(normalize(weights, "norm2", x, variant))


def encoder(
    weights: Weights, x: Array, mask: Array | None, *, num_layers: int, num_heads: int, kv_heads: int, variant: Variant
) -> Array:
    """Return the memory (B, S, D) of embedded positions (B, S, D)."""
    table = shared_table(weights, "attention", variant)
    for layer in range(num_layers):
        inner = {**under(weights, f"layers.{layer}"), **table}
        x = encoder_layer(inner, x, mask, num_heads=num_heads, kv_heads=kv_heads, variant=variant)
    return normalize(weights, "norm", x, variant) if variant.final_norm else x
