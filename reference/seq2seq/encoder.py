"""Encoder: layers of self-attention over the whole source, one after the other.

    pre:   x' = x + MHA(LN₁(x))         y = x' + FFN(LN₂(x'))
    post:  x' = LN₁(x + MHA(x))         y = LN₂(x' + FFN(x'))
    memory = LN(layer_N(… layer_1(x)))

Vaswani et al. 2017, §3.1 (post, no last norm); Xiong et al. 2020 (pre). A layer is a
transformer block that is not causal: every position sees earlier and later ones, and only padding is hidden.
"""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn

from conformkit.reference.feed_forward import FeedForward
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.norms import norm_for
from conformkit.reference.relative_positions import table_for
from conformkit.reference.sizes import check_at_least
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["Encoder", "EncoderLayer"]


class EncoderLayer(nn.Module):
    """Let source positions exchange information, then transform each on its own.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S), such as (B, 1, 1, S) → (B, S, D)
    Raises: SizeError and ShapeError as MultiHeadAttention and FeedForward do.
    Source: Vaswani et al. 2017, §3.1. Differs: no dropout on the stream itself.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, *, variant: Variant = CANONICAL
    ) -> None:  # fmt: skip
        super().__init__()
        self.pre = variant.placement == "pre"
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, causal=False, variant=variant)
        self.feed_forward = FeedForward(d_model, d_ff, dropout, variant=variant)
        self.norm1 = norm_for(d_model, variant)
        self.norm2 = norm_for(d_model, variant)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (B, S, D) to (B, S, D); `mask` hides padded positions."""
        if self.pre:
            x = x + self.attention(self.norm1(x), mask)
            x = x + self.feed_forward(self.norm2(x))
        else:
            x = self.norm1(x + self.attention(x, mask))
            x = self.norm2(x + self.feed_forward(x))
        return x


class Encoder(nn.Module):
    """A stack of encoder layers, each with weights of its own, and the variant's last norm.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) → memory (B, S, D)
    Raises: SizeError for a negative number of layers; otherwise as EncoderLayer.
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
            EncoderLayer(d_model, num_heads, d_ff, dropout, variant=variant) for _ in range(num_layers)
        )
        for layer in self.layers if self.relative is not None else ():
            cast("EncoderLayer", layer).attention.relative = self.relative
        self.norm = norm_for(d_model, variant) if variant.final_norm else None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map embedded source positions (B, S, D) to the memory (B, S, D)."""
        for layer in self.layers:
            x = layer(x, mask)
        if self.norm is not None:
            x = self.norm(x)
        return x
