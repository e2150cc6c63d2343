"""Functional: parameters in plain lists, `F.linear` with one fused projection, both sublayers on the same stream, two norms."""

import torch
from torch import nn
from torch.nn import functional as F


def drawn(*shape):
    return nn.Parameter(torch.randn(*shape) * 0.02)


def weights_of(out, into):
    return nn.ParameterList([drawn(out, into), nn.Parameter(torch.zeros(out))])


class SelfAttention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        if heads < 1 or size % heads:
            raise ValueError(f"{size} features cannot be split into {heads} heads")
        self.heads = heads
        self.query, self.key, self.value, self.dense = (weights_of(size, size) for _ in range(4))

    def forward(self, x):
        parts = (F.linear(x, *pair).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                 for pair in (self.query, self.key, self.value))  # fmt: skip
        mixed = F.scaled_dot_product_attention(*parts, is_causal=True)
        return F.linear(mixed.transpose(1, 2).flatten(2), *self.dense)


class Mlp(nn.Module):
    def __init__(self, size, hidden):
        super().__init__()
        self.first, self.second = weights_of(hidden, size), weights_of(size, hidden)

    def forward(self, x):
        return F.linear(F.relu(F.linear(x, *self.first)) ** 2, *self.second)


class ParallelLayer(nn.Module):
    def __init__(self, size, heads, hidden):
        super().__init__()
        self.attention, self.mlp = SelfAttention(size, heads), Mlp(size, hidden)
        self.input_norm, self.post_attention_norm = nn.LayerNorm(size), nn.LayerNorm(size)

    def forward(self, x):
        return sum((self.attention(self.input_norm(x)), self.mlp(self.post_attention_norm(x))), x)


class NeoX(nn.Module):
    def __init__(self, vocab, size, heads, depth, hidden, length):
        super().__init__()
        self.embed_in, self.places = drawn(vocab, size), drawn(length, size)
        self.stack = nn.Sequential(*(ParallelLayer(size, heads, hidden) for _ in range(depth)))
        self.final = nn.LayerNorm(size)
        self.embed_out = drawn(vocab, size)

    def forward(self, ids):
        if ids.shape[1] > len(self.places):
            raise ValueError(f"{ids.shape[1]} ids, at most {len(self.places)}")
        x = F.embedding(ids, self.embed_in) + self.places[: ids.shape[1]]
        return self.final(self.stack(x)) @ self.embed_out.T
