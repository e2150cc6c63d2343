"""NumPy: a base made larger for longer texts (NTK), each position turned by complex numbers, row by row."""

import numpy as np

FACTOR = 4.0


def base(width):
    return 10000.0 * FACTOR ** (width / (width - 2))


def turned(row, position):
    """Turn one row (H, d) of halves, as complex numbers, by its position."""
    width = row.shape[-1]
    frequencies = base(width) ** (-np.arange(width // 2) / (width // 2))
    pairs = (row[:, : width // 2] + 1j * row[:, width // 2 :]) * np.exp(1j * position * frequencies)
    return np.concatenate([pairs.real, pairs.imag], axis=-1)


class Attention:
    def __init__(self, dim, heads):
        if dim < 1 or heads < 1 or dim % (2 * heads) or dim // heads < 4:
            raise ValueError(f"{heads} heads of an even width of at least 4 do not make {dim} features")
        self.heads = heads
        self.weights = {name: np.random.normal(0.0, dim**-0.5, (dim, dim)) for name in ("q", "k", "v", "o")}

    def __call__(self, x):
        batch, length, dim = x.shape
        out = np.empty_like(x, dtype=np.float64)
        for b in range(batch):
            q, k, v = ((x[b] @ self.weights[name]).reshape(length, self.heads, -1) for name in "qkv")
            keys = np.stack([turned(row, t) for t, row in enumerate(k)]) if length else k
            for t in range(length):
                scores = np.einsum("hd,khd->hk", turned(q[t], t), keys[: t + 1]) / np.sqrt(dim // self.heads)
                weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
                weights /= weights.sum(axis=-1, keepdims=True)
                out[b, t] = np.einsum("hk,khd->hd", weights, v[: t + 1]).reshape(-1) @ self.weights["o"]
        return out.astype(x.dtype)
