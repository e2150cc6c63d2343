"""NumPy: each query gathers the keys of its own window; layers without one and with one take turns."""

import math

import numpy as np


def soften(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def fresh(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape) / math.sqrt(shape[0])


class Affine:
    def __init__(self, size):
        self.gain, self.shift = np.ones(size), np.zeros(size)

    def __call__(self, x):
        centered = x - x.mean(-1, keepdims=True)
        return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * self.gain + self.shift


class LocalAttention:
    """`reach` positions are seen, the query's own included; None: all."""

    def __init__(self, width, heads, reach=3):
        if width % heads:
            raise ValueError(f"{heads} heads do not divide {width} features")
        self.heads, self.reach = heads, reach
        self.wq, self.wk, self.wv, self.wo = (fresh(width, width) for _ in range(4))

    def __call__(self, x):
        batch, length, width = x.shape
        reach = min(self.reach or length, length)
        q, k, v = ((x @ w).reshape(batch, length, self.heads, -1) for w in (self.wq, self.wk, self.wv))
        rows = np.arange(length)[:, None] - np.arange(reach)[::-1]  # of each query, the positions that it gathers
        before = rows < 0
        rows = rows.clip(0)
        scores = np.einsum("bthd,btrhd->bthr", q, k[:, rows]) / math.sqrt(width // self.heads)
        scores = np.where(before[None, :, None, :], -np.inf, scores)
        mixed = np.einsum("bthr,btrhd->bthd", soften(scores), v[:, rows])
        return mixed.reshape(batch, length, width) @ self.wo


class Mlp:
    def __init__(self, width, hidden):
        self.w1, self.b1, self.w2, self.b2 = (
            fresh(width, hidden),
            np.zeros(hidden),
            fresh(hidden, width),
            np.zeros(width),
        )

    def __call__(self, x):
        return np.maximum(x @ self.w1 + self.b1, 0.0) @ self.w2 + self.b2


class Layer:
    def __init__(self, width, heads, hidden, reach=3):
        self.attention, self.mlp = LocalAttention(width, heads, reach), Mlp(width, hidden)
        self.before_attention, self.before_mlp = Affine(width), Affine(width)

    def __call__(self, x):
        x = x + self.attention(self.before_attention(x))
        return x + self.mlp(self.before_mlp(x))


class Model:
    def __init__(self, words, width, heads, layers, hidden, longest):
        self.table, self.longest = fresh(words, width), longest
        self.layers = [Layer(width, heads, hidden, 3 if i % 2 else None) for i in range(layers)]
        self.last, self.out = Affine(width), fresh(width, words)

    def places(self, length, width):
        angles = np.arange(length)[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
        codes = np.zeros((length, width))
        codes[:, 0::2], codes[:, 1::2] = np.sin(angles), np.cos(angles)[:, : width // 2]
        return codes

    def __call__(self, ids):
        if ids.shape[1] > self.longest or ids.size and not 0 <= ids.min() <= ids.max() < len(self.table):
            raise ValueError(f"ids {ids.shape} for {len(self.table)} words and {self.longest} places")
        x = self.table[ids] + self.places(ids.shape[1], self.table.shape[1])
        for layer in self.layers:
            x = layer(x)
        return self.last(x) @ self.out
