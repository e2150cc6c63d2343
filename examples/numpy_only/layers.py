import math

import numpy as np

from .attention import MultiHeadAttention, random_matrix

_erf = np.vectorize(math.erf, otypes=[float])


def gelu(x):
    return x * (0.5 * (1.0 + _erf(x / math.sqrt(2)))).astype(x.dtype)


class LayerNorm:
    def __init__(self, d_model, eps=1e-5):
        self.gamma = np.ones(d_model)
        self.beta = np.zeros(d_model)
        self.eps = eps

    def __call__(self, x):
        mean = x.mean(axis=-1, keepdims=True)
        variance = x.var(axis=-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + self.eps) * self.gamma + self.beta


class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout = {dropout} is not between 0 and 1")
        self.W1, self.b1 = random_matrix(d_model, d_ff), np.zeros(d_ff)
        self.W2, self.b2 = random_matrix(d_ff, d_model), np.zeros(d_model)

    def __call__(self, x):
        return gelu(x @ self.W1 + self.b1) @ self.W2 + self.b2


class PositionalEncoding:
    def __init__(self, d_model, max_len):
        if d_model < 1 or max_len < 1:
            raise ValueError(f"d_model = {d_model} and max_len = {max_len} must be at least 1")
        self.d_model, self.max_len = d_model, max_len

    def __call__(self, x):
        _, length, width = x.shape
        if width != self.d_model or length > self.max_len:
            raise ValueError(f"x is {x.shape}, expected at most {self.max_len} positions, {self.d_model} wide")
        feature = np.arange(width)
        angles = np.arange(length)[:, None] / 10000 ** (2 * (feature // 2) / width)  # (T, D)
        encoding = np.where(feature % 2 == 0, np.sin(angles), np.cos(angles))
        return x + encoding.astype(x.dtype)


class TransformerBlock:
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.norm1 = LayerNorm(d_model)
        self.norm2 = LayerNorm(d_model)

    def __call__(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))
