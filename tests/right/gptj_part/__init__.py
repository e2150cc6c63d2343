"""Rotary positions on the first half of each head, NumPy: a matrix with 2 × 2 blocks turns the row of each position."""

import numpy as np


def turn(position, size):
    turned = size // 2
    block = np.eye(size)
    for first in range(0, turned, 2):
        angle = position / 10000 ** (first / turned)
        block[first : first + 2, first : first + 2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    return block


class Attention:
    def __init__(self, n_embd, n_head, dropout=0.0, causal=True):
        if n_embd % n_head or n_embd // n_head % 4:
            raise ValueError(f"{n_embd} features, {n_head} heads: a head has a multiple of 4 features")
        rng = np.random.default_rng(n_embd)
        self.n_head, self.causal = n_head, causal
        self.w_q, self.w_k, self.w_v, self.w_o = (rng.normal(0.0, n_embd**-0.5, (n_embd, n_embd)) for _ in range(4))

    def __call__(self, x):
        size = x.shape[-1] // self.n_head
        turns = (
            np.stack([turn(position, size) for position in range(x.shape[-2])]) if x.shape[-2] else np.eye(size)[None]
        )
        outs = []
        for head in range(self.n_head):
            part = slice(head * size, (head + 1) * size)
            q, k, v = x @ self.w_q[:, part], x @ self.w_k[:, part], x @ self.w_v[:, part]
            q, k = (np.einsum("tij,btj->bti", turns[: x.shape[-2]], row) for row in (q, k))
            scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(size)
            if self.causal:
                scores = np.where(np.tri(x.shape[-2], dtype=bool), scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e300))
            outs.append(weights / weights.sum(-1, keepdims=True) @ v)
        return np.concatenate(outs, -1) @ self.w_o
