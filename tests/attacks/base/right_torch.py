"""The contract's attention in torch, as a function and as a module."""

import math

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(~mask, lowest) if mask.dtype == torch.bool else (scores + mask).clamp(min=lowest)
    return torch.softmax(scores, dim=-1) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        assert d_model % num_heads == 0
        self.heads, self.causal = num_heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        return self.dropout(self.out(self.attend(x, q, k, v).transpose(1, 2).flatten(-2)))

    def attend(self, x, q, k, v):
        """Return the heads' outputs (B, H, T, d_head); attacks change what goes in, or what comes out."""
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril() if self.causal else None
        return scaled_dot_product_attention(q, k, v, mask)
