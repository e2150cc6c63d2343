"""Functions on lists of arrays, NumPy: queries and keys normalized over all heads, scores and logits capped."""

import numpy as np

EPS = 1e-5


def rms(x, gain):
    return gain * x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + EPS)


def squash(x, cap):
    return cap * np.tanh(x / cap)


def draw(rng, rows, columns):
    return rng.normal(0.0, rows**-0.5, (rows, columns))


class Attention:
    cap = 20.0

    def __init__(self, n_embd, n_head):
        if n_embd % n_head:
            raise ValueError(f"{n_embd} features, {n_head} heads")
        rng = np.random.default_rng(n_embd)
        self.n_head = n_head
        self.w_q, self.w_k, self.w_v, self.w_o = (draw(rng, n_embd, n_embd) for _ in range(4))
        self.q_norm, self.k_norm = np.ones(n_embd), np.ones(n_embd)

    def __call__(self, x):
        length = x.shape[-2]
        q, k, v = rms(x @ self.w_q, self.q_norm), rms(x @ self.w_k, self.k_norm), x @ self.w_v
        size = x.shape[-1] // self.n_head
        outs = []
        for start in range(0, x.shape[-1], size):
            part = slice(start, start + size)
            scores = squash(q[..., part] @ np.swapaxes(k[..., part], -1, -2) / np.sqrt(size), self.cap)
            scores[..., np.triu_indices(length, 1)[0], np.triu_indices(length, 1)[1]] = -np.inf
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            outs.append(weights / weights.sum(-1, keepdims=True) @ v[..., part])
        return np.concatenate(outs, -1) @ self.w_o


class Network:
    def __init__(self, n_embd, n_hidden):
        rng = np.random.default_rng(n_hidden)
        self.gate, self.up, self.down = (
            draw(rng, n_embd, n_hidden),
            draw(rng, n_embd, n_hidden),
            draw(rng, n_hidden, n_embd),
        )

    def __call__(self, x):
        a = x @ self.gate
        return (a / (1.0 + np.exp(-a)) * (x @ self.up)) @ self.down


class Block:
    def __init__(self, n_embd, n_head, n_hidden):
        self.attn, self.mlp = Attention(n_embd, n_head), Network(n_embd, n_hidden)
        self.norm1, self.norm2 = np.ones(n_embd), np.ones(n_embd)

    def __call__(self, x):
        x = x + self.attn(rms(x, self.norm1))
        return x + self.mlp(rms(x, self.norm2))


class Model:
    cap = 30.0

    def __init__(self, n_vocab, n_embd, n_head, n_layer, n_hidden, n_ctx):
        rng = np.random.default_rng(n_vocab)
        self.wte, self.wpe = draw(rng, n_vocab, n_embd), draw(rng, n_ctx, n_embd)
        self.blocks = [Block(n_embd, n_head, n_hidden) for _ in range(n_layer)]
        self.norm, self.head = np.ones(n_embd), draw(rng, n_embd, n_vocab)

    def __call__(self, ids):
        if ids.shape[-1] > len(self.wpe) or (ids.size and (ids.min() < 0 or ids.max() >= len(self.wte))):
            raise ValueError(f"{ids.shape[-1]} ids between {ids.min()} and {ids.max()}")
        x = self.wte[ids] + self.wpe[: ids.shape[-1]]
        for block in self.blocks:
            x = block(x)
        return squash(rms(x, self.norm) @ self.head, self.cap)
