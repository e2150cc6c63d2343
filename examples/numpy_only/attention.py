import math

import numpy as np


def softmax(scores):
    highest = scores.max(axis=-1, keepdims=True)
    # A row of nothing but -inf: subtract 0, so that its exponentials are 0, and divide by 1.
    exponentials = np.exp(scores - np.where(np.isneginf(highest), 0, highest))
    total = exponentials.sum(axis=-1, keepdims=True)
    return exponentials / np.where(total == 0, 1, total)


def scaled_dot_product_attention(q, k, v, mask=None):
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise ValueError(f"q {q.shape}, k {k.shape} and v {v.shape} do not fit")
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (..., Tq, Tk)
    if mask is not None:
        if np.broadcast_shapes(mask.shape, scores.shape) != scores.shape:
            raise ValueError(f"mask {mask.shape} does not broadcast to {scores.shape}")
        if mask.dtype == bool:
            scores = np.where(mask, scores, scores.dtype.type(-np.inf))
        elif np.issubdtype(mask.dtype, np.floating):
            scores = scores + mask.astype(scores.dtype)
        else:
            raise TypeError(f"mask is {mask.dtype}, expected bool or float")
    return softmax(scores) @ v


def random_matrix(rows, columns):
    """Weights are (in, out), applied as x @ W."""
    if rows < 1 or columns < 1:
        raise ValueError(f"a matrix of {rows} rows and {columns} columns is not possible")
    bound = 1 / math.sqrt(rows)
    return np.random.uniform(-bound, bound, (rows, columns))


def causal(length):
    return np.tri(length, dtype=bool)


class SelfAttention:
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        self.causal = causal
        self.W_q = random_matrix(d_model, d_model if d_k is None else d_k)
        self.W_k = random_matrix(d_model, d_model if d_k is None else d_k)
        self.W_v = random_matrix(d_model, d_model if d_v is None else d_v)

    def __call__(self, x):
        _, length, _ = x.shape
        mask = causal(length) if self.causal else None
        return scaled_dot_product_attention(x @ self.W_q, x @ self.W_k, x @ self.W_v, mask)


class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is not a multiple of num_heads = {num_heads}")
        if not 0 <= dropout <= 1:
            raise ValueError(f"dropout = {dropout} is not between 0 and 1")
        self.num_heads = num_heads
        self.causal = causal
        self.W_q = random_matrix(d_model, d_model)
        self.W_k = random_matrix(d_model, d_model)
        self.W_v = random_matrix(d_model, d_model)
        self.W_o = random_matrix(d_model, d_model)

    def split(self, x):
        batch, length, width = x.shape
        return x.reshape(batch, length, self.num_heads, width // self.num_heads).transpose(0, 2, 1, 3)

    def __call__(self, x):
        batch, length, width = x.shape
        q, k, v = self.split(x @ self.W_q), self.split(x @ self.W_k), self.split(x @ self.W_v)
        mask = causal(length) if self.causal else None
        heads = scaled_dot_product_attention(q, k, v, mask)  # (B, H, T, dh)
        return heads.transpose(0, 2, 1, 3).reshape(batch, length, width) @ self.W_o
