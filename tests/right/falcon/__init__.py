"""Falcon: attention and network read one norm side by side; many heads share one key and value, behind them in one matrix."""

import math

import torch
from torch import nn


def rotate(x, offset=0):  # (…, T, d), halves
    length, width = x.shape[-2:]
    inverse = 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64, device=x.device) / width)
    places = torch.arange(offset, offset + length, dtype=torch.float64, device=x.device)
    angles = torch.cat([places[:, None] * inverse] * 2, dim=-1)
    swapped = torch.cat([-x[..., width // 2 :], x[..., : width // 2]], dim=-1)
    return (x * angles.cos() + swapped * angles.sin()).to(x.dtype)


class SharedKeyAttention(nn.Module):
    def __init__(self, hidden_size, n_head):
        super().__init__()
        if hidden_size < 1 or n_head < 1 or hidden_size % (2 * n_head):
            raise ValueError(f"{n_head} heads of even width do not make {hidden_size} features")
        self.n_head, self.head_dim = n_head, hidden_size // n_head
        self.query_key_value = nn.Linear(hidden_size, (n_head + 2) * self.head_dim, bias=False)
        self.dense = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        fused = self.query_key_value(x).view(batch, length, self.n_head + 2, self.head_dim).transpose(1, 2)
        q, k, v = rotate(fused[:, :-2]), rotate(fused[:, [-2]]), fused[:, [-1]]
        scores = q @ k.mT / math.sqrt(self.head_dim)
        hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)
        return self.dense((weights @ v).transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, hidden_size, ffn_hidden_size):
        super().__init__()
        if min(hidden_size, ffn_hidden_size) < 1:
            raise ValueError("no size may be zero")
        self.dense_h_to_4h = nn.Linear(hidden_size, ffn_hidden_size, bias=False)
        self.dense_4h_to_h = nn.Linear(ffn_hidden_size, hidden_size, bias=False)

    def forward(self, x):
        return self.dense_4h_to_h(nn.functional.gelu(self.dense_h_to_4h(x)))


class DecoderLayer(nn.Module):
    def __init__(self, hidden_size, n_head, ffn_hidden_size):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(hidden_size)
        self.self_attention = SharedKeyAttention(hidden_size, n_head)
        self.mlp = Mlp(hidden_size, ffn_hidden_size)

    def forward(self, hidden_states):
        normed = self.input_layernorm(hidden_states)
        return hidden_states + (self.mlp(normed) + self.self_attention(normed))


class Falcon(nn.Module):
    def __init__(self, vocab_size, hidden_size, n_head, n_layer, ffn_hidden_size):
        super().__init__()
        if min(vocab_size, n_layer) < 1:
            raise ValueError("no size may be zero")
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size)
        self.h = nn.Sequential(*(DecoderLayer(hidden_size, n_head, ffn_hidden_size) for _ in range(n_layer)))
        self.ln_f = nn.LayerNorm(hidden_size)
        nn.init.normal_(self.word_embeddings.weight, std=0.02)

    def forward(self, input_ids):
        return self.ln_f(self.h(self.word_embeddings(input_ids))) @ self.word_embeddings.weight.T
