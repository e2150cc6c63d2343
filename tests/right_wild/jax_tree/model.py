"""GPT as pure functions over a tree of parameters (NumPy stands in for jax.numpy)."""
import math

import numpy as np


def dense_init(rng, n_in, n_out):
    return {"w": rng.normal(0, 0.02, (n_in, n_out)), "b": np.zeros(n_out)}


def norm_init(n):
    return {"scale": np.ones(n), "offset": np.zeros(n)}


def block_init(rng, d_model, d_ff):
    return {
        "ln1": norm_init(d_model),
        "attn": {"qkv": dense_init(rng, d_model, 3 * d_model), "out": dense_init(rng, d_model, d_model)},
        "ln2": norm_init(d_model),
        "mlp": {"up": dense_init(rng, d_model, d_ff), "down": dense_init(rng, d_ff, d_model)},
    }


def init_params(rng, vocab_size, d_model, n_layers, d_ff, max_len):
    return {
        "wte": rng.normal(0, 0.02, (vocab_size, d_model)),
        "wpe": rng.normal(0, 0.01, (max_len, d_model)),
        "blocks": [block_init(rng, d_model, d_ff) for _ in range(n_layers)],
        "ln_f": norm_init(d_model),
    }


def dense(p, x):
    return x @ p["w"] + p["b"]


def layer_norm(p, x, eps=1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    var = np.var(x, axis=-1, keepdims=True)
    return p["scale"] * (x - mean) / np.sqrt(var + eps) + p["offset"]


def gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attention(q, k, v, mask):
    return softmax(q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1]) + mask) @ v


def split_heads(x, n_heads):
    *batch, t, d = x.shape
    return np.swapaxes(x.reshape(*batch, t, n_heads, d // n_heads), -2, -3)


def merge_heads(x):
    *batch, h, t, d = x.shape
    return np.swapaxes(x, -2, -3).reshape(*batch, t, h * d)


def causal_mask(t, dtype):
    return np.triu(np.full((t, t), -1e10, dtype=dtype), k=1)


def multi_head_attention(p, x, n_heads):
    q, k, v = (split_heads(y, n_heads) for y in np.split(dense(p["qkv"], x), 3, axis=-1))
    return dense(p["out"], merge_heads(attention(q, k, v, causal_mask(x.shape[-2], x.dtype))))


def mlp(p, x):
    return dense(p["down"], gelu(dense(p["up"], x)))


def block(p, x, n_heads):
    x = x + multi_head_attention(p["attn"], layer_norm(p["ln1"], x), n_heads)
    return x + mlp(p["mlp"], layer_norm(p["ln2"], x))


def forward(params, tokens, n_heads):
    x = params["wte"][tokens] + params["wpe"][np.arange(tokens.shape[-1])]
    for p in params["blocks"]:
        x = block(p, x, n_heads)
    return layer_norm(params["ln_f"], x) @ params["wte"].T


def greedy(params, tokens, n_heads, n_new, max_len):
    for _ in range(n_new):
        logits = forward(params, tokens[:, -max_len:], n_heads)
        tokens = np.concatenate([tokens, np.argmax(logits[:, -1], -1)[:, None]], axis=1)
    return tokens
