import math

import torch
import torch.nn as nn


def attend(query, key, value, hidden):
    """softmax(QKᵀ/√d) V over the keys that are not hidden; a query without keys gets zeros."""
    scores = torch.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    blind = hidden.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(hidden & ~blind, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    weights = weights.masked_fill(blind, 0.0)
    return torch.einsum("...qk,...kd->...qd", weights, value)


class MultiHeadSelfAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError("embed_dim must be a multiple of num_heads")
        self.num_heads = num_heads
        self.query_proj = nn.Linear(embed_dim, embed_dim)
        self.key_proj = nn.Linear(embed_dim, embed_dim)
        self.value_proj = nn.Linear(embed_dim, embed_dim)
        self.output_proj = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def _heads(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.num_heads, -1).transpose(1, 2)

    def forward(self, x, mask):
        y = attend(self._heads(self.query_proj(x)), self._heads(self.key_proj(x)), self._heads(self.value_proj(x)), mask)
        y = y.transpose(1, 2).reshape(x.shape)
        return self.dropout(self.output_proj(y))


class FeedForward(nn.Module):
    def __init__(self, embed_dim, ff_dim, dropout=0.0):
        super().__init__()
        self.expand = nn.Linear(embed_dim, ff_dim)
        self.contract = nn.Linear(ff_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.contract(nn.functional.relu(self.expand(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, embed_dim, max_len):
        super().__init__()
        position = torch.arange(max_len, dtype=torch.float64).unsqueeze(1)
        rate = torch.exp(torch.arange(0, embed_dim, 2, dtype=torch.float64) * (-math.log(10000.0) / embed_dim))
        table = torch.zeros(max_len, embed_dim, dtype=torch.float64)
        table[:, 0::2] = torch.sin(position * rate)
        table[:, 1::2] = torch.cos(position * rate[: embed_dim // 2])
        self.register_buffer("table", table.to(torch.get_default_dtype()))

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError("the input is longer than the table")
        return x + self.table[: x.shape[1]]


class TransformerLayer(nn.Module):
    """Post-norm, as in the original paper."""

    def __init__(self, embed_dim, num_heads, ff_dim, dropout=0.0):
        super().__init__()
        self.attention = MultiHeadSelfAttention(embed_dim, num_heads, dropout)
        self.feed_forward = FeedForward(embed_dim, ff_dim, dropout)
        self.norm_attention = nn.LayerNorm(embed_dim)
        self.norm_feed_forward = nn.LayerNorm(embed_dim)

    def forward(self, x, mask):
        x = self.norm_attention(x + self.attention(x, mask))
        return self.norm_feed_forward(x + self.feed_forward(x))
