"""Decoder: layers that look at the target so far, then at the memory.

    pre:   x' = x + MHA(LN₁(x))     x″ = x' + Cross(LN₂(x'), M)     y = x″ + FFN(LN₃(x″))
    post:  x' = LN₁(x + MHA(x))     x″ = LN₂(x' + Cross(x', M))     y = LN₃(x″ + FFN(x″))

M is the encoder's output, the same for every layer, and is not normed again. Vaswani et al. 2017, §3.1 (post, no last
norm); Xiong et al. 2020 (pre). What a target position must not see, the caller's mask hides.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from conformkit.reference.feed_forward import FeedForward
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.norms import norm_for
from conformkit.reference.relative_positions import table_for
from conformkit.reference.seq2seq.cross_attention import CrossAttention
from conformkit.reference.sizes import check_at_least
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["Decoder", "DecoderLayer"]


class DecoderLayer(nn.Module):
    """Let target positions exchange information, then read the memory, then transform each on its own.

    Shapes: x (B, T, D), memory (B, S, D), tgt_mask broadcastable to (B, H, T, T), such as (B, 1, T, T), memory_mask to
            (B, H, T, S), such as (B, 1, 1, S) → (B, T, D)
    Raises: SizeError and ShapeError as MultiHeadAttention, CrossAttention and FeedForward do.
    Source: Vaswani et al. 2017, §3.1. Differs: no dropout on the stream itself.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, *, variant: Variant = CANONICAL
    ) -> None:  # fmt: skip
        super().__init__()
        self.pre = variant.placement == "pre"
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout, causal=False, variant=variant)
        self.self_attention.causal_bias = True
        self.cross_attention = CrossAttention(d_model, num_heads, dropout, variant=variant)
        self.feed_forward = FeedForward(d_model, d_ff, dropout, variant=variant)
        self.norm1 = norm_for(d_model, variant)
        self.norm2 = norm_for(d_model, variant)
        self.norm3 = norm_for(d_model, variant)

    def forward(
        self, x: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Map (B, T, D) to (B, T, D); the masks hide target positions and memory positions."""
        if self.pre:
            x = x + self.self_attention(self.norm1(x), tgt_mask)
            x = x + self.cross_attention(self.norm2(x), memory, memory, memory_mask)
            x = x + self.feed_forward(self.norm3(x))
        else:
            x = self.norm1(x + self.self_attention(x, tgt_mask))
            x = self.norm2(x + self.cross_attention(x, memory, memory, memory_mask))
            x = self.norm3(x + self.feed_forward(x))
        return x


class Decoder(nn.Module):
    """A stack of decoder layers, each with weights of its own, and the variant's last norm.

    Shapes: x (B, T, D), memory (B, S, D), masks as DecoderLayer → (B, T, D)
    Raises: SizeError for a negative number of layers; otherwise as DecoderLayer.
    Source: Vaswani et al. 2017, §3.1.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        num_layers: int,
        dropout: float = 0.0,
        *,
        variant: Variant = CANONICAL,
    ) -> None:
        super().__init__()
        check_at_least(0, num_layers=num_layers)
        self.relative = table_for(num_heads, variant) if variant.shares_table else None
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, num_heads, d_ff, dropout, variant=variant) for _ in range(num_layers)
        )
        for layer in self.layers if self.relative is not None else ():
            cast("DecoderLayer", layer).self_attention.relative = self.relative
        self.norm = norm_for(d_model, variant) if variant.final_norm else None

    def forward(
        self, x: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Map embedded target positions (B, T, D) to (B, T, D); every layer reads the same memory."""
        for layer in self.layers:
            x = layer(x, memory, tgt_mask, memory_mask)
        if self.norm is not None:
            x = self.norm(x)
        return x
