"""Relative positions in NumPy: a vector of biases by distance, which each row of scores reads at its own offset."""

import numpy as np


def _norm(x, gain, shift, eps=1e-5):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + eps) * gain + shift


def _rows_by_distance(buckets, reach, length, both_sides):
    """Rows of the table for the distances -(length - 1) … length - 1, of a key before its query."""
    one_side = buckets // 2 if both_sides else buckets
    half = one_side // 2
    edges = half * (reach / half) ** (np.arange(1, one_side - half) / (one_side - half))  # where shared buckets begin

    def row(distance):
        if distance < half:
            return distance
        return half + int(np.searchsorted(edges, distance * (1 + 1e-12), side="right"))

    before = [row(d) for d in range(length)]
    after = [one_side + row(d) for d in range(length)] if both_sides else [0] * length
    return np.array([*after[:0:-1], *before])


class Attention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True, buckets=16, reach=64):
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is no multiple of num_heads {num_heads}")
        draw = np.random.default_rng(0)
        self.heads, self.causal, self.buckets, self.reach = num_heads, causal, buckets, reach
        self.wq, self.wk, self.wv, self.wo = draw.normal(size=(4, d_model, d_model)) / np.sqrt(d_model)
        self.bias_table = draw.normal(size=(buckets, num_heads))

    def __call__(self, x):
        batch, length, width = x.shape
        each = width // self.heads
        by_distance = self.bias_table[_rows_by_distance(self.buckets, self.reach, length, not self.causal)].T
        bias = np.stack([by_distance[:, t : t + length][:, ::-1] for t in range(length)], axis=1)  # (H, T, T)
        out = np.empty_like(x)
        for row in range(batch):
            for head in range(self.heads):
                part = slice(head * each, (head + 1) * each)
                q, k, v = (x[row] @ w[:, part] for w in (self.wq, self.wk, self.wv))
                scores = q @ k.T / each**0.5 + bias[head]
                if self.causal:
                    scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
                weights = np.exp(scores - scores.max(-1, keepdims=True))
                out[row, :, part] = weights / weights.sum(-1, keepdims=True) @ v
        return out @ self.wo


class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        draw = np.random.default_rng(1)
        self.w1, self.b1 = draw.normal(size=(d_model, d_ff)) / d_model**0.5, np.zeros(d_ff)
        self.w2, self.b2 = draw.normal(size=(d_ff, d_model)) / d_ff**0.5, np.zeros(d_model)

    def __call__(self, x):
        return np.maximum(x @ self.w1 + self.b1, 0.0) @ self.w2 + self.b2


class Block:
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        self.attention, self.network = Attention(d_model, num_heads, dropout, causal), FeedForward(d_model, d_ff)
        self.gain1, self.shift1 = np.ones(d_model), np.zeros(d_model)
        self.gain2, self.shift2 = np.ones(d_model), np.zeros(d_model)

    def __call__(self, x):
        x = x + self.attention(_norm(x, self.gain1, self.shift1))
        return x + self.network(_norm(x, self.gain2, self.shift2))
