import math

import numpy as np

from .activations import softmax
from .linear import Linear


def scaled_dot_product_attention(q, k, v, mask=None):
    """mask: boolean, True where a query may look, or float, added to the scores."""
    scores = q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        if mask.dtype == np.bool_:
            scores = np.where(mask, scores, -np.inf)
        else:
            scores = scores + mask
    return softmax(scores).astype(v.dtype) @ v


def causal_mask(length):
    return np.tril(np.ones((length, length), dtype=bool))


class SelfAttention:
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        d_k = d_model if d_k is None else d_k
        d_v = d_model if d_v is None else d_v
        self.causal = causal
        self.w_q = Linear(d_model, d_k, bias=False)
        self.w_k = Linear(d_model, d_k, bias=False)
        self.w_v = Linear(d_model, d_v, bias=False)

    def __call__(self, x):
        mask = causal_mask(x.shape[1]) if self.causal else None
        return scaled_dot_product_attention(self.w_q(x), self.w_k(x), self.w_v(x), mask)


class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is not divisible by num_heads {num_heads}")
        self.num_heads, self.causal, self.dropout = num_heads, causal, dropout  # dropout: inference only, ignored
        self.w_q = Linear(d_model, d_model)
        self.w_k = Linear(d_model, d_model)
        self.w_v = Linear(d_model, d_model)
        self.w_o = Linear(d_model, d_model)

    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, length, self.num_heads, width // self.num_heads).transpose(0, 2, 1, 3)

    def __call__(self, x):
        mask = causal_mask(x.shape[1]) if self.causal else None
        heads = scaled_dot_product_attention(self.split(self.w_q(x)), self.split(self.w_k(x)), self.split(self.w_v(x)), mask)
        return self.w_o(heads.transpose(0, 2, 1, 3).reshape(x.shape))
