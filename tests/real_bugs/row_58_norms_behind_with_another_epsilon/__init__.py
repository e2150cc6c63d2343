"""Norms before and after both sublayers; those after them have another epsilon."""

from torch import nn

import right_code


class TransformerBlock(right_code.TransformerBlock):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, d_ff, dropout, causal)
        self.norm1_after, self.norm2_after = nn.LayerNorm(d_model, eps=1e-6), nn.LayerNorm(d_model, eps=1e-6)

    def forward(self, x):
        x = x + self.norm1_after(self.attn(self.norm1(x)))
        return x + self.norm2_after(self.ffn(self.norm2(x)))
