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
        scores = q @ k.transpose(-1, -2) / math.sqrt(x.shape[-1])
        if self.causal:
            scores = scores.masked_fill(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1), -math.inf)
        mixed = scores.softmax(-1) @ v
        return self.dropout(self.out(mixed.transpose(1, 2).flatten(-2)))
