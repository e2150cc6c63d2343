"""NumPy, no keys and no values: W_k is multiplied into the queries, and heads mix latents before W_v."""

import numpy as np


class LatentAttention:
    def __init__(self, width, heads, latent, turned, causal=True):
        if width < 1 or heads < 1 or width % heads:
            raise ValueError(f"{width} features cannot be shared out among {heads} heads")
        if turned % 2:
            raise ValueError(f"{turned} features that rotate: want an even number")
        rng = np.random.default_rng()
        own = width // heads

        def uniform(*shape):
            return rng.uniform(-1, 1, shape) * shape[-2] ** -0.5

        self.heads, self.causal, self.scale = heads, causal, (own + turned) ** -0.5
        self.w_dkv, self.w_kr = uniform(width, latent), uniform(width, turned)
        self.w_q, self.w_qr = uniform(heads, width, own), uniform(heads, width, turned)
        self.w_uk, self.w_uv = uniform(heads, latent, own), uniform(heads, latent, own)
        self.w_o, self.gain = uniform(width, width), np.ones(latent)

    def __call__(self, x):
        batch, length, width = x.shape
        c = x @ self.w_dkv
        c = c / np.sqrt(np.square(c).mean(-1, keepdims=True) + 1e-5) * self.gain
        per_head = x[:, None]
        absorbed = per_head @ self.w_q @ self.w_uk.swapaxes(-1, -2)
        turned = self.turn(per_head @ self.w_qr) @ self.turn(x @ self.w_kr)[:, None].swapaxes(-1, -2)
        scores = self.scale * (absorbed @ c[:, None].swapaxes(-1, -2) + turned)
        if self.causal:
            scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e300))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ c[:, None]) @ self.w_uv
        return mixed.swapaxes(1, 2).reshape(batch, length, width) @ self.w_o

    def turn(self, x):
        half = x.shape[-1] // 2
        angles = np.arange(x.shape[-2])[:, None] * 10000.0 ** -(np.arange(half) / half)
        turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
        return np.concatenate([turned.real, turned.imag], axis=-1).astype(x.dtype)
