import math

import torch
from torch.func import vmap


def _normal(gen, *shape, std):
    return (torch.randn(*shape, generator=gen) * std).requires_grad_()


def _const(value, *shape):
    return torch.full(shape, float(value)).requires_grad_()


# ---- parameters -------------------------------------------------------------------------------------------------

def init_attention(gen, d_model, n_heads):
    d_head = d_model // n_heads
    s = d_model ** -0.5
    return {
        "wq": _normal(gen, n_heads, d_model, d_head, std=s),
        "wk": _normal(gen, n_heads, d_model, d_head, std=s),
        "wv": _normal(gen, n_heads, d_model, d_head, std=s),
        "wo": _normal(gen, n_heads, d_head, d_model, std=s),
    }


def init_feed_forward(gen, d_model, d_ff):
    return {
        "w_in": _normal(gen, d_model, d_ff, std=d_model ** -0.5),
        "b_in": _const(0, d_ff),
        "w_out": _normal(gen, d_ff, d_model, std=d_ff ** -0.5),
        "b_out": _const(0, d_model),
    }


def init_block(gen, d_model, n_heads, d_ff):
    return {
        "ln1": {"g": _const(1, d_model), "b": _const(0, d_model)},
        "attn": init_attention(gen, d_model, n_heads),
        "ln2": {"g": _const(1, d_model), "b": _const(0, d_model)},
        "mlp": init_feed_forward(gen, d_model, d_ff),
    }


def init_params(seed, config):
    """config: dict with vocab, ctx, d_model, n_heads, d_ff, n_layers"""
    gen = torch.Generator().manual_seed(seed)
    d = config["d_model"]
    return {
        "wte": _normal(gen, config["vocab"], d, std=0.02),
        "blocks": [init_block(gen, d, config["n_heads"], config["d_ff"]) for _ in range(config["n_layers"])],
        "ln_f": {"g": _const(1, d), "b": _const(0, d)},
        "unembed": _normal(gen, d, config["vocab"], std=d ** -0.5),
    }


# ---- functions --------------------------------------------------------------------------------------------------

def layer_norm(p, x, eps=1e-5):
    x = x - x.mean(-1, keepdim=True)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * p["g"] + p["b"]


def positions(length, d_model, dtype=torch.float32, device=None):
    """The sinusoidal table, sines in even columns and cosines in odd ones."""
    column = torch.arange(d_model, dtype=torch.float64, device=device)
    even = 2 * torch.div(column, 2, rounding_mode="floor")
    angle = torch.arange(length, dtype=torch.float64, device=device)[:, None] / 10000.0 ** (even / d_model)
    return torch.where(column.long() % 2 == 0, angle.sin(), angle.cos()).to(dtype)


def _one_head(wq, wk, wv, wo, x, bias):
    """One head for a batch of sequences: what it adds to the output."""
    q, k, v = x @ wq, x @ wk, x @ wv
    scores = q @ k.mT / math.sqrt(q.shape[-1]) + bias
    return torch.softmax(scores, -1) @ v @ wo


def attention(p, x):
    """Causal multi-head attention, (B, T, D) -> (B, T, D); the heads are a vmapped axis and are summed."""
    t = x.shape[-2]
    bias = torch.zeros(t, t, dtype=x.dtype, device=x.device)
    bias = bias.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), -torch.inf)
    heads = vmap(_one_head, in_dims=(0, 0, 0, 0, None, None))(p["wq"], p["wk"], p["wv"], p["wo"], x, bias)
    return heads.sum(0)


def feed_forward(p, x):
    return torch.nn.functional.gelu(x @ p["w_in"] + p["b_in"], approximate="tanh") @ p["w_out"] + p["b_out"]


def block(p, x):
    x = x + attention(p["attn"], layer_norm(p["ln1"], x))
    return x + feed_forward(p["mlp"], layer_norm(p["ln2"], x))


def embed(p, tokens):
    x = p["wte"][tokens]
    return x + positions(tokens.shape[-1], x.shape[-1], x.dtype, x.device)


def forward(params, config, tokens):
    if tokens.shape[-1] > config["ctx"]:
        raise ValueError("the sequence is longer than the context")
    x = embed(params, tokens)
    for p in params["blocks"]:
        x = block(p, x)
    return layer_norm(params["ln_f"], x) @ params["unembed"]


def loss_fn(params, config, tokens):
    logp = torch.log_softmax(forward(params, config, tokens[:, :-1]), -1)
    return -logp.gather(-1, tokens[:, 1:, None]).mean()


@torch.no_grad()
def sample(params, config, tokens, steps, temperature=1.0, generator=None):
    for _ in range(steps):
        logits = forward(params, config, tokens[:, -config["ctx"]:])[:, -1]
        if temperature == 0:
            new = logits.argmax(-1, keepdim=True)
        else:
            new = torch.multinomial(torch.softmax(logits / temperature, -1), 1, generator=generator)
        tokens = torch.cat([tokens, new], 1)
    return tokens


class Model:
    """Parameters and function in one object, for those who want to write model(tokens)."""

    def __init__(self, seed, config):
        if config["d_model"] % config["n_heads"]:
            raise ValueError("n_heads must divide d_model")
        self.config = dict(config)
        self.params = init_params(seed, self.config)

    def __call__(self, tokens):
        return forward(self.params, self.config, tokens)

    def sample(self, tokens, steps, temperature=1.0):
        return sample(self.params, self.config, tokens, steps, temperature)
