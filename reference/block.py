"""Transformer block: attention, then a feed-forward network, each inside a residual connection.

    pre:   x' = x + MHA(LN₁(x))         y = x' + FFN(LN₂(x'))
    post:  x' = LN₁(x + MHA(x))         y = LN₂(x' + FFN(x'))

Xiong et al. 2020 explain `pre`; Vaswani et al. 2017 chose `post`. Dropout acts inside MHA and FFN, never
on the stream x itself. placements.py has what newer models do.
"""

from __future__ import annotations

from torch import Tensor, nn

from conformkit.reference.feed_forward import FeedForward
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.norms import norm_for
from conformkit.reference.placements import arrange_norms, arranged
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["TransformerBlock"]


class TransformerBlock(nn.Module):
    """Let positions exchange information, then transform each on its own.

    Shapes: x (B, T, D), mask broadcastable to (B, H, T, T) → (B, T, D)
    Raises: SizeError and ShapeError as MultiHeadAttention and FeedForward do.
    Source: Vaswani et al. 2017, §3.1; Xiong et al. 2020.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        causal: bool = True,
        *,
        variant: Variant = CANONICAL,
    ) -> None:
        super().__init__()
        self.pre = variant.placement == "pre"
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, causal, variant=variant)
        self.feed_forward = FeedForward(d_model, d_ff, dropout, variant=variant)
        self.norm1 = norm_for(d_model, variant)
        self.norm2 = norm_for(d_model, variant)
        self.placement: str = variant.placement
        self.layers = 1
        """The number of blocks in the model; DeepNorm depends on it."""
        arrange_norms(self, d_model, variant)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Map (B, T, D) to (B, T, D); `mask` hides more than causality does."""
        if self.placement not in {"pre", "post"}:
            return arranged(self, x, lambda z: self.attention(z, mask))
        if self.pre:
            x = x + self.attention(self.norm1(x), mask)
            x = x + self.feed_forward(self.norm2(x))
        else:
            x = self.norm1(x + self.attention(x, mask))
            x = self.norm2(x + self.feed_forward(x))
        return x
