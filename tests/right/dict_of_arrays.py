"""NumPy, functional: parameters are nested dicts of arrays, and pure functions do the work."""

import math

import numpy as np


def scaled_dot_product_attention(q, k, v, mask=None):
    *_, n, d = q.shape
    scores = np.einsum("...qd,...kd->...qk", q, k) * d**-0.5
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype.kind not in "bf":
            raise TypeError(f"mask of {mask.dtype}")
        mask = np.broadcast_to(mask, scores.shape)
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
        scores = scores.astype(q.dtype)
    shift = np.nan_to_num(scores.max(-1, keepdims=True), neginf=0.0)
    e = np.exp(scores - shift)
    return (e / np.maximum(e.sum(-1, keepdims=True), np.finfo(e.dtype).tiny)) @ v


def init_linear(n_in, n_out, bias=True):
    if n_in < 1 or n_out < 1:
        raise ValueError(f"a linear map from {n_in} to {n_out} features")
    p = {"w": np.random.randn(n_in, n_out) / math.sqrt(n_in)}
    return p | {"b": np.zeros(n_out)} if bias else p


def linear(x, w, b=None):
    return x @ w if b is None else x @ w + b


def layer_norm(x, g, b, eps=1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(np.square(x - mean), axis=-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + eps) + b


def init_norm(d):
    return {"g": np.ones(d), "b": np.zeros(d)}


def gelu(x):
    erf = np.array([math.erf(t) for t in (x / math.sqrt(2)).ravel().tolist()], dtype=x.dtype)
    return x / 2 * (1 + erf.reshape(x.shape))


def mha(x, c_attn, c_proj, n_head, causal):
    qkv = np.split(linear(x, **c_attn), 3, axis=-1)
    heads = [np.stack(np.split(part, n_head, axis=-1), axis=1) for part in qkv]  # each (B, H, T, dh)
    y = scaled_dot_product_attention(*heads, np.tri(x.shape[1], dtype=bool) if causal else None)
    return linear(np.concatenate([y[:, h] for h in range(n_head)], axis=-1), **c_proj)


def ffn(x, c_fc, c_proj):
    return linear(gelu(linear(x, **c_fc)), **c_proj)


def sinusoids(length, d):
    pe = np.zeros((length, d))
    for i in range(d):
        wave = np.cos if i % 2 else np.sin
        pe[:, i] = wave(np.arange(length) / 10000 ** ((i - i % 2) / d))
    return pe


class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"{d_model} features, {num_heads} heads")
        self.num_heads, self.causal = num_heads, causal
        self.params = {
            "c_attn": init_linear(d_model, 3 * d_model, False),
            "c_proj": init_linear(d_model, d_model, False),
        }

    def __call__(self, x):
        return mha(x, **self.params, n_head=self.num_heads, causal=self.causal)


class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        self.params = {"c_fc": init_linear(d_model, d_ff), "c_proj": init_linear(d_ff, d_model)}

    def __call__(self, x):
        return ffn(x, **self.params)


class PositionalEncoding:
    def __init__(self, d_model, max_len):
        self.shape = max_len, d_model

    def __call__(self, x):
        if x.shape[1] > self.shape[0] or x.shape[2] != self.shape[1]:
            raise ValueError(f"x is {x.shape}, the table {self.shape}")
        return x + sinusoids(x.shape[1], x.shape[2]).astype(x.dtype)


class TransformerBlock:
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        self.attn, self.mlp = MultiHeadAttention(d_model, num_heads, dropout, causal), FeedForward(d_model, d_ff)
        self.norms = {"ln_1": init_norm(d_model), "ln_2": init_norm(d_model)}

    def __call__(self, x):
        x = x + self.attn(layer_norm(x, **self.norms["ln_1"]))
        return x + self.mlp(layer_norm(x, **self.norms["ln_2"]))


class TinyTransformerLM:
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        self.block_size = block_size
        self.wte = np.random.randn(vocab_size, d_model)
        self.h = [TransformerBlock(d_model, num_heads, d_ff) for _ in range(num_layers)]
        self.ln_f = init_norm(d_model)
        self.head = init_linear(d_model, vocab_size)

    def __call__(self, ids):
        if ids.shape[1] > self.block_size:
            raise ValueError(f"{ids.shape[1]} ids, block_size {self.block_size}")
        if (ids < 0).any():
            raise IndexError(f"negative id {ids.min()}")
        x = self.wte[ids]
        x = x + sinusoids(*x.shape[1:]).astype(x.dtype)
        for block in self.h:
            x = block(x)
        return linear(layer_norm(x, **self.ln_f), **self.head)

    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if ids.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError("an empty prompt or a negative option")
        if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError("top_k or top_p out of range")
        for _ in range(max_new_tokens):
            z = self(ids[:, -self.block_size :])[:, -1].astype(np.float64)
            if temperature == 0:
                new = z.argmax(-1)
            else:
                p = np.exp((z - z.max(-1, keepdims=True)) / temperature)
                order = np.argsort(-p, axis=-1, kind="stable")
                p = np.take_along_axis(p, order, -1)[:, :top_k]
                p /= p.sum(-1, keepdims=True)
                if top_p is not None:
                    p *= np.cumsum(p, -1) - p < top_p
                cdf = np.cumsum(p, -1)
                rank = (cdf <= np.random.rand(len(p), 1) * cdf[:, -1:]).sum(-1, keepdims=True)
                new = np.take_along_axis(order, rank, -1)[:, 0]
            ids = np.concatenate([ids, new[:, None].astype(ids.dtype)], axis=1)
        return ids
