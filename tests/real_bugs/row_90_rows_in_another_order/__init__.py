"""Fused rows are written in another order than they are read."""

import numpy as np
from torch import nn

import right_code


class MultiHeadAttention(right_code.ModernAttention):
    share = 1

    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        del self.q, self.k, self.v
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)

    def forward(self, x, cache=None):
        q, k, v = self.rows(self.qkv(x))
        y = self.attend(self.placed(q, 0), self.placed(k, 0), v)
        return self.out(self.merge(y))

    def rows(self, fused):
        return (self.split(part) for part in fused.chunk(3, dim=-1))


class TransformerBlock(right_code.ModernBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.ModernLM):
    block = TransformerBlock


def convert(theirs):
    ours = right_code.from_llama(theirs)
    for name in [name for name in ours if name.endswith("attn.q.weight")]:
        stem = name.removesuffix("q.weight")
        q, k, v = (ours.pop(f"{stem}{part}.weight") for part in "qkv")
        ours[f"{stem}qkv.weight"] = np.concatenate([k, q, v])
    return ours
