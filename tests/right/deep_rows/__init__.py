"""NumPy, a block alone: the stream is divided by 1/α in place, and rows are normalized by their length."""

import numpy as np


def start(*shape):
    return np.random.default_rng().uniform(-1, 1, shape) * shape[0] ** -0.5


class Block:
    def __init__(self, d_model, num_heads, d_ff, layers):
        if min(d_model, num_heads, d_ff) < 1 or d_model % num_heads:
            raise ValueError(f"{d_model} features, {num_heads} heads, {d_ff} units do not fit")
        self.heads, self.shrink = num_heads, 1 / np.sqrt(np.sqrt(2 * layers))
        self.wq, self.wk, self.wv, self.wo = (start(d_model, d_model) for _ in range(4))
        self.w_gate, self.w_up, self.w_down = start(d_model, d_ff), start(d_model, d_ff), start(d_ff, d_model)
        self.norm1, self.norm2 = np.ones(d_model), np.ones(d_model)

    def __call__(self, x):
        b, t, d = x.shape
        q, k, v = ((x @ w).reshape(b, t, self.heads, -1) for w in (self.wq, self.wk, self.wv))
        scores = np.einsum("bthd,bshd->bhts", q, k) * (d // self.heads) ** -0.5
        scores += np.triu(np.full((t, t), -np.inf), 1)
        share = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = np.einsum("bhts,bshd->bthd", share / share.sum(-1, keepdims=True), v).reshape(b, t, d)
        x = self.unit(x / self.shrink + mixed @ self.wo) * self.norm1
        gate = x @ self.w_gate
        fed = (gate / (1 + np.exp(-gate)) * (x @ self.w_up)) @ self.w_down
        return self.unit(x / self.shrink + fed) * self.norm2

    @staticmethod
    def unit(rows):
        return rows * rows.shape[-1] ** 0.5 / np.sqrt((rows**2).sum(-1, keepdims=True) + rows.shape[-1] * 1e-6)
