"""NumPy, head by head: what a head gives is divided by 1 + exp(-z), z one number that the position computes for it."""

import numpy as np


class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout is {dropout}, want 0 to 1")
        if num_heads < 1 or d_model < num_heads or d_model % num_heads:
            raise ValueError(f"{d_model} features are not a multiple of {num_heads} heads")
        self.heads, self.width, self.causal = num_heads, d_model // num_heads, causal
        rng = np.random.default_rng()
        near = d_model**-0.5
        self.wq, self.wk, self.wv, self.wo = (rng.uniform(-near, near, (d_model, d_model)) for _ in range(4))
        self.head_gate = rng.uniform(-near, near, (d_model, num_heads))
        self.bo = np.zeros(d_model)

    def __call__(self, x):
        length = x.shape[1]
        hidden = np.triu(np.ones((length, length), bool), 1) & self.causal
        total = np.zeros_like(x) + self.bo
        for head in range(self.heads):
            own = slice(head * self.width, (head + 1) * self.width)
            q, k, v = x @ self.wq[:, own], x @ self.wk[:, own], x @ self.wv[:, own]
            scores = np.where(hidden, -np.inf, np.einsum("btd,bsd->bts", q, k) / np.sqrt(self.width))
            odds = np.exp(scores - scores.max(-1, keepdims=True))
            given = odds @ v / odds.sum(-1, keepdims=True)
            shut = np.exp(np.clip(-(x @ self.head_gate[:, head]), -700, 700))
            total = total + (given / (1 + shut)[..., None]) @ self.wo[own]
        return total
