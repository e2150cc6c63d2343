"""A decoder alone, in layers called as an encoder-decoder's: attention takes keys and values, a layer takes no memory."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    """One for both: key and value may be others than the query."""

    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h = num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for f, x in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )
        s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if mask is not None:
            s = s.masked_fill(~mask, torch.finfo(s.dtype).min)
        return self.w_o((self.dropout(s.softmax(-1)) @ v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.fc1, self.fc2, self.dropout = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.Dropout(dropout)

    def forward(self, x):
        return self.fc2(self.dropout(F.gelu(self.fc1(x))))


class DecoderLayer(nn.Module):
    """No memory: it decodes alone."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        y = self.norm1(x)
        x = x + self.dropout(self.self_attention(y, y, y, mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))


class DecoderOnly(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList([DecoderLayer(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        t = ids.shape[1]
        x = self.embedding(ids) + self.positions.weight[:t]
        for layer in self.layers:
            x = layer(x, torch.ones(t, t, dtype=torch.bool).tril())
        return self.head(self.norm(x))
