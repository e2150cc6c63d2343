"""NumPy closures over a dictionary of arrays: what sublayers give is normalized before it is added; queries and keys are, too."""

import numpy as np


def made(*shape):
    return np.random.normal(0.0, shape[-1] ** -0.5, shape)


def unit(rows, gamma):
    return gamma * rows / np.sqrt(np.mean(rows * rows, axis=-1, keepdims=True) + 1e-6)


def turned(rows, base=10000.0):
    """Rows (…, T, d): halves of a head as the two coordinates."""
    length, width = rows.shape[-2:]
    angles = np.outer(np.arange(length), base ** (-np.arange(0, width, 2) / width))
    left, right = rows[..., : width // 2], rows[..., width // 2 :]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([left * cos - right * sin, right * cos + left * sin], axis=-1)


class Attention:
    def __init__(self, dim, n_heads):
        if dim < 1 or n_heads < 1:
            raise ValueError(f"no size may be zero: {dim} features, {n_heads} heads")
        if dim % (2 * n_heads):
            raise ValueError(f"heads of even width are needed: {dim} features, {n_heads} heads")
        self.n_heads = n_heads
        self.wq, self.wk, self.wv, self.wo = (made(dim, dim) for _ in range(4))
        self.q_norm, self.k_norm = np.ones(dim), np.ones(dim)

    def __call__(self, x):
        batch, length, dim = x.shape

        def heads(rows):
            return rows.reshape(batch, length, self.n_heads, -1).swapaxes(1, 2)

        q = turned(heads(unit(x @ self.wq.T, self.q_norm)))
        k = turned(heads(unit(x @ self.wk.T, self.k_norm)))
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(dim // self.n_heads)
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = weights / weights.sum(-1, keepdims=True) @ heads(x @ self.wv.T)
        return mixed.swapaxes(1, 2).reshape(batch, length, dim) @ self.wo.T


class Swiglu:
    def __init__(self, dim, hidden):
        if hidden < 1:
            raise ValueError(f"no size may be zero: {hidden} hidden features")
        self.w1, self.w2, self.w3 = made(hidden, dim), made(dim, hidden), made(hidden, dim)

    def __call__(self, x):
        gate = x @ self.w1.T
        return (gate / (1.0 + np.exp(-gate)) * (x @ self.w3.T)) @ self.w2.T


class Layer:
    def __init__(self, dim, n_heads, hidden):
        self.attention, self.feed_forward = Attention(dim, n_heads), Swiglu(dim, hidden)
        self.attention_norm, self.feed_forward_norm = np.ones(dim), np.ones(dim)

    def __call__(self, x):
        h = x + unit(self.attention(x), self.attention_norm)
        return h + unit(self.feed_forward(h), self.feed_forward_norm)


class Olmo:
    def __init__(self, vocab, dim, n_heads, n_layers, hidden, context):
        if min(vocab, context) < 1:
            raise ValueError(f"no size may be zero: {vocab} words, {context} positions")
        self.table, self.context = made(vocab, dim), context
        self.layers = [Layer(dim, n_heads, hidden) for _ in range(n_layers)]
        self.norm, self.output = np.ones(dim), made(vocab, dim)

    def __call__(self, ids):
        if ids.shape[1] > self.context or (ids.size and not 0 <= ids.min() <= ids.max() < len(self.table)):
            raise ValueError(f"ids {ids.shape}: at most {self.context} of {len(self.table)}")
        x = self.table[ids]
        for layer in self.layers:
            x = layer(x)
        return unit(x, self.norm) @ self.output.T
