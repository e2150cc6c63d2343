"""A small GPT in plain NumPy, in the style of JAX tutorials: every layer is a pair (init, apply)."""
import numpy as np


def glorot(rng, n_in, n_out):
    return rng.normal(0.0, np.sqrt(2.0 / (n_in + n_out)), size=(n_in, n_out))


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def gelu(x):
    return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3)))


# --- linear
def linear_init(rng, n_in, n_out):
    return {"w": glorot(rng, n_in, n_out), "b": np.zeros(n_out)}


def linear_apply(params, x):
    return x @ params["w"] + params["b"]


# --- layer norm
def layernorm_init(dim):
    return {"gamma": np.ones(dim), "beta": np.zeros(dim)}


def layernorm_apply(params, x, eps=1e-5):
    mu = x.mean(-1, keepdims=True)
    var = x.var(-1, keepdims=True)
    return params["gamma"] * (x - mu) / np.sqrt(var + eps) + params["beta"]


# --- attention
def attention_init(rng, d_model):
    return {name: linear_init(rng, d_model, d_model) for name in ("query", "key", "value", "out")}


def attention_apply(params, x, num_heads):
    B, T, D = x.shape
    dh = D // num_heads

    def heads(name):
        return linear_apply(params[name], x).reshape(B, T, num_heads, dh).transpose(0, 2, 1, 3)

    q, k, v = heads("query"), heads("key"), heads("value")
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(dh)
    scores = np.where(np.tril(np.ones((T, T), dtype=bool)), scores, -np.inf)
    y = softmax(scores) @ v
    return linear_apply(params["out"], y.transpose(0, 2, 1, 3).reshape(B, T, D))


# --- feed-forward
def mlp_init(rng, d_model, d_ff):
    return {"fc": linear_init(rng, d_model, d_ff), "proj": linear_init(rng, d_ff, d_model)}


def mlp_apply(params, x):
    return linear_apply(params["proj"], gelu(linear_apply(params["fc"], x)))


# --- block
def block_init(rng, d_model, d_ff):
    return {
        "ln1": layernorm_init(d_model),
        "attn": attention_init(rng, d_model),
        "ln2": layernorm_init(d_model),
        "mlp": mlp_init(rng, d_model, d_ff),
    }


def block_apply(params, x, num_heads):
    x = x + attention_apply(params["attn"], layernorm_apply(params["ln1"], x), num_heads)
    return x + mlp_apply(params["mlp"], layernorm_apply(params["ln2"], x))


# --- the whole model
def gpt_init(rng, vocab_size, d_model, num_layers, d_ff, block_size):
    return {
        "wte": rng.normal(0, 0.02, size=(vocab_size, d_model)),
        "wpe": rng.normal(0, 0.02, size=(block_size, d_model)),
        "blocks": [block_init(rng, d_model, d_ff) for _ in range(num_layers)],
        "ln_f": layernorm_init(d_model),
        "head": linear_init(rng, d_model, vocab_size),
    }


def gpt_apply(params, ids, num_heads):
    x = params["wte"][ids] + params["wpe"][: ids.shape[1]]
    for block in params["blocks"]:
        x = block_apply(block, x, num_heads)
    return linear_apply(params["head"], layernorm_apply(params["ln_f"], x))
