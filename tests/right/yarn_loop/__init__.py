"""YaRN as gpt-oss has it, with bounds between pairs; NumPy; the factor multiplies scores in place of tables."""

import numpy as np

BASE, FACTOR, TRAINED, FAST, SLOW = 150000.0, 32.0, 4096, 32.0, 1.0


def frequencies(size):
    half = size // 2
    freq = BASE ** (np.arange(half) / half)
    low = half * np.log(TRAINED / (FAST * 2 * np.pi)) / np.log(BASE)
    high = half * np.log(TRAINED / (SLOW * 2 * np.pi)) / np.log(BASE)
    low, high = max(low, 0.0), min(high, size - 1.0)
    mask = 1.0 - np.clip((np.arange(half) - low) / (high - low), 0.0, 1.0)
    return (1.0 / (FACTOR * freq)) * (1.0 - mask) + (1.0 / freq) * mask


class Attention:
    def __init__(self, hidden, heads, dropout=0.0, causal=True):
        if hidden % heads or hidden // heads % 2 or hidden // heads < 4:
            raise ValueError(f"{hidden} features, {heads} heads")
        rng = np.random.default_rng(heads)
        self.heads, self.causal = heads, causal
        self.qkv = rng.normal(0.0, hidden**-0.5, (hidden, 3 * hidden))
        self.out = rng.normal(0.0, hidden**-0.5, (hidden, hidden))
        self.concentration = 0.1 * np.log(FACTOR) + 1.0

    def __call__(self, x):
        batch, length, width = x.shape
        size = width // self.heads
        split = (x @ self.qkv).reshape(batch, length, 3, self.heads, size).transpose(2, 0, 3, 1, 4)
        angles = np.arange(length)[:, None] * frequencies(size)
        waves = np.exp(1j * angles)
        q, k = (row[..., : size // 2] + 1j * row[..., size // 2 :] for row in split[:2])
        scores = np.real((q * waves) @ np.conj(k * waves).swapaxes(-1, -2))
        scores = self.concentration**2 * scores / np.sqrt(size)
        if self.causal:
            scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e300))
        mixed = weights / weights.sum(-1, keepdims=True) @ split[2]
        return mixed.transpose(0, 2, 1, 3).reshape(batch, length, width) @ self.out
