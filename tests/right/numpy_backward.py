"""NumPy with hand-written backward passes: gradients beside the weights, caches filled by the forward pass."""

from math import erf as one_erf
from math import sqrt

import numpy as np

erf = np.frompyfunc(one_erf, 1, 1)


class Layer:
    def __init__(self):
        self.params, self.grads, self.cache = {}, {}, None

    def add(self, name, value):
        self.params[name] = value
        self.grads[name] = np.zeros_like(value)

    def __call__(self, *args):
        return self.forward(*args)


def scaled_dot_product_attention(q, k, v, mask=None, return_weights=False):
    s = np.einsum("...qd,...kd->...qk", q, k) / sqrt(k.shape[-1])
    if mask is not None:
        mask = np.asarray(mask)
        if mask.dtype == np.bool_:
            s = np.where(mask, s, -np.inf)
        else:
            s = s + mask
    m = s.max(-1, keepdims=True)
    m = np.where(np.isfinite(m), m, 0)
    w = np.exp(s - m)
    z = w.sum(-1, keepdims=True)
    w = np.divide(w, z, out=np.zeros_like(w), where=z > 0)
    out = w @ v
    return (out, w) if return_weights else out


class Dense(Layer):
    def __init__(self, d_in, d_out, bias, rng):
        super().__init__()
        self.add("W", rng.normal(0, 1 / sqrt(d_in), (d_in, d_out)))
        if bias:
            self.add("b", np.zeros(d_out))

    def forward(self, x):
        self.cache = x
        y = x @ self.params["W"]
        if "b" in self.params:
            y = y + self.params["b"]
        return y

    def backward(self, dy):
        x = self.cache
        self.grads["W"] += x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])
        if "b" in self.params:
            self.grads["b"] += dy.reshape(-1, dy.shape[-1]).sum(0)
        return dy @ self.params["W"].T


class Norm(Layer):
    def __init__(self, d):
        super().__init__()
        self.add("gamma", np.ones(d))
        self.add("beta", np.zeros(d))

    def forward(self, x):
        mu = x.mean(axis=-1, keepdims=True)
        inv = 1 / np.sqrt(((x - mu) ** 2).mean(axis=-1, keepdims=True) + 1e-5)
        xhat = (x - mu) * inv
        self.cache = (xhat, inv)
        return xhat * self.params["gamma"] + self.params["beta"]


class MultiHeadAttention(Layer):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True, rng=None):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model={d_model}, num_heads={num_heads}")
        rng = rng or np.random.default_rng()
        self.h, self.causal, self.p = num_heads, causal, dropout
        self.q, self.k, self.v, self.o = (Dense(d_model, d_model, False, rng) for _ in range(4))

    def split(self, x):
        b, t, d = x.shape
        return x.reshape(b, t, self.h, d // self.h).swapaxes(1, 2)

    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        t = x.shape[1]
        mask = ~np.triu(np.ones((t, t), bool), 1) if self.causal else None
        y, w = scaled_dot_product_attention(q, k, v, mask, True)
        self.cache = (q, k, v, w)
        self.attention_weights = w
        return self.o(y.swapaxes(1, 2).reshape(x.shape))


class FeedForward(Layer):
    def __init__(self, d_model, d_ff, dropout=0.0, rng=None):
        super().__init__()
        rng = rng or np.random.default_rng()
        self.l1, self.l2 = Dense(d_model, d_ff, True, rng), Dense(d_ff, d_model, True, rng)

    def forward(self, x):
        h = self.l1(x)
        self.cache = h
        return self.l2(h * (1 + erf(h / sqrt(2)).astype(h.dtype)) / 2)


class PositionalEncoding(Layer):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.inv_freq = 1.0 / 10000 ** (np.arange(0, d_model, 2) / d_model)
        self.max_len, self.d_model = max_len, d_model
        angles = np.outer(np.arange(max_len), self.inv_freq)
        self.pe = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(max_len, -1)[:, :d_model]

    def forward(self, x):
        if x.shape[1] > self.max_len:
            raise ValueError(f"{x.shape[1]} positions, at most {self.max_len}")
        return x + self.pe[None, : x.shape[1]].astype(x.dtype)


class TransformerBlock(Layer):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True, rng=None):
        super().__init__()
        self.n1, self.n2 = Norm(d_model), Norm(d_model)
        self.att = MultiHeadAttention(d_model, num_heads, dropout, causal, rng)
        self.ffn = FeedForward(d_model, d_ff, dropout, rng)

    def forward(self, x):
        x = x + self.att(self.n1(x))
        return x + self.ffn(self.n2(x))


class TinyTransformerLM(Layer):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0, seed=0):
        super().__init__()
        rng = np.random.default_rng(seed)
        self.vocab_size, self.block_size = vocab_size, block_size
        self.add("E", rng.normal(0, 0.02, (vocab_size, d_model)))
        self.pos = PositionalEncoding(d_model, block_size)
        self.layers = [TransformerBlock(d_model, num_heads, d_ff, dropout, True, rng) for _ in range(num_layers)]
        self.norm = Norm(d_model)
        self.head = Dense(d_model, vocab_size, True, rng)

    def forward(self, ids):
        ids = np.asarray(ids)
        if ids.min() < 0 or ids.max() >= self.vocab_size:
            raise IndexError("token out of range")
        if ids.shape[1] > self.block_size:
            raise ValueError("too long")
        self.cache = ids
        x = self.pos(self.params["E"][ids])
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))

    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, seed=None):
        rng = np.random.default_rng(seed)
        ids = np.asarray(ids)
        for _ in range(max_new_tokens):
            z = self(ids[:, -self.block_size :])[:, -1]
            if temperature == 0:
                new = z.argmax(-1)
            else:
                z = z / temperature
                z = z - z.max(-1, keepdims=True)
                if top_k is not None and top_k < z.shape[-1]:
                    kth = np.sort(z, -1)[:, -top_k][:, None]
                    z = np.where(z >= kth, z, -np.inf)
                p = np.exp(z)
                p /= p.sum(-1, keepdims=True)
                if top_p is not None:
                    order = np.argsort(-p, axis=-1, kind="stable")
                    ps = np.take_along_axis(p, order, -1)
                    ps[np.cumsum(ps, -1) - ps >= top_p] = 0
                    p = np.zeros_like(p)
                    np.put_along_axis(p, order, ps, -1)
                    p /= p.sum(-1, keepdims=True)
                new = (rng.random((len(p), 1)) < np.cumsum(p, -1)).argmax(-1)
            ids = np.concatenate([ids, new[:, None].astype(ids.dtype)], 1)
        return ids
