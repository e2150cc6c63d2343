"""The transformer block: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from conformkit.spec.arrays import Array
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.layers import Weights, normalize, under
from conformkit.spec.multi_head_attention import multi_head_attention
from conformkit.spec.protocols import ArrayT, Built_co
from conformkit.spec.variants import Variant

__all__ = [
    "TransformerBlock", "TransformerBlockConstructor", "TransformerBlockModule", "stream_factor", "transformer_block",
]  # fmt: skip


@runtime_checkable
class TransformerBlock(Protocol[ArrayT]):
    """Attention, then feed-forward, each with its own norm and residual path.

    Construct: (d_model, num_heads, d_ff, dropout=0.0, causal=True).
    Shapes:    (B, T, d_model) → (B, T, d_model).
    Source:    Vaswani et al. 2017, §3.1; Xiong et al. 2020 for the placement of the norms.
    """

    def __call__(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class TransformerBlockModule(TransformerBlock[ArrayT], Protocol[ArrayT]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, x: ArrayT, /) -> ArrayT: ...


@runtime_checkable
class TransformerBlockConstructor(Protocol[Built_co]):
    """The class TransformerBlock, or a function that builds one."""

    def __call__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, causal: bool = True,
    ) -> Built_co: ...  # fmt: skip


def stream_factor(variant: Variant, layers: int) -> float:
    """Return by what the stream is multiplied before a sublayer's output is added: DeepNorm's α, (2L)^¼; else 1."""
    return float((2 * layers) ** 0.25) if variant.placement == "deepnorm" else 1.0


def transformer_block(
    weights: Weights, x: Array, *, num_heads: int, kv_heads: int, causal: bool, variant: Variant, layers: int = 1
) -> Array:
    """Return the output of a block, one of `layers` in its model.

    pre: x' = x + A(N₁ x), y = x' + F(N₂ x'); post: x' = N₁(x + A x), y = N₂(x' + F x'); others in placements.md.
    """

    def attend(z: Array) -> Array:
        inner = under(weights, "attention")
        return multi_head_attention(inner, z, num_heads=num_heads, kv_heads=kv_heads, causal=causal, variant=variant)

    def feed(z: Array) -> Array:
        return feed_forward(under(weights, "feed_forward"), z, variant=variant)

    def norm(name: str, z: Array) -> Array:
        return normalize(weights, name, z, variant)

    match variant.placement:
        case "post" | "deepnorm":
            alpha = stream_factor(variant, layers)
            x = norm("norm1", alpha * x + attend(x))
            return norm("norm2", alpha * x + feed(x))
        case "output":
            x = x + norm("norm1", attend(x))
            return x + norm("norm2", feed(x))
        case "sandwich":
            x = x + norm("norm1_after", attend(norm("norm1", x)))
            return x + norm("norm2_after", feed(norm("norm2", x)))
        case "parallel":
            read = norm("norm1", x)
            return x + attend(read) + feed(read)
        case "parallel_two_norms":
            return x + attend(norm("norm1", x)) + feed(norm("norm2", x))
        case "pre":
            x = x + attend(norm("norm1", x))
            return x + feed(norm("norm2", x))
