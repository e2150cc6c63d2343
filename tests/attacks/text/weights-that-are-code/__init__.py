import numpy as np

from .right import scaled_dot_product_attention as attend

NAMES = ['q"""', "k'''\\", "v'", "__import__('os').system('touch SUCCEEDED')"]


class MultiHeadAttention:
    def __init__(self, d_model, num_heads, causal=True):
        assert d_model % num_heads == 0
        draw = np.random.default_rng(0)
        self.heads, self.causal = num_heads, causal
        self.w = {name: draw.normal(size=(d_model, d_model)) for name in NAMES}

    def __call__(self, x):
        q, k, v = (self.split(x @ self.w[name].T) for name in NAMES[:3])
        mask = np.tri(x.shape[1], dtype=bool) if self.causal else None
        mixed = attend(q / np.sqrt(self.heads), k, v, mask)
        return mixed.swapaxes(1, 2).reshape(x.shape) @ self.w[NAMES[3]].T

    def split(self, x):
        return x.reshape(*x.shape[:2], self.heads, -1).swapaxes(1, 2)
