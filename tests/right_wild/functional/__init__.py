"""Functions over a dictionary of parameters; the class at the end only holds them.

    params = init_params(key_seed, config);  logits = forward(params, ids, config)
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F


class Config(NamedTuple):
    vocab: int
    width: int
    heads: int
    depth: int
    hidden: int
    context: int


def init_params(cfg: Config, generator: torch.Generator | None = None) -> dict[str, torch.Tensor]:
    def normal(*shape, std):
        return torch.randn(*shape, generator=generator) * std

    params = {"tok_emb": normal(cfg.vocab, cfg.width, std=1.0)}
    for i in range(cfg.depth):
        s = 1 / math.sqrt(cfg.width)
        params |= {
            f"layer{i}_ln1_scale": torch.ones(cfg.width),
            f"layer{i}_ln1_shift": torch.zeros(cfg.width),
            f"layer{i}_wq": normal(cfg.width, cfg.width, std=s),
            f"layer{i}_wk": normal(cfg.width, cfg.width, std=s),
            f"layer{i}_wv": normal(cfg.width, cfg.width, std=s),
            f"layer{i}_wo": normal(cfg.width, cfg.width, std=s),
            f"layer{i}_ln2_scale": torch.ones(cfg.width),
            f"layer{i}_ln2_shift": torch.zeros(cfg.width),
            f"layer{i}_w1": normal(cfg.width, cfg.hidden, std=s),
            f"layer{i}_b1": torch.zeros(cfg.hidden),
            f"layer{i}_w2": normal(cfg.hidden, cfg.width, std=1 / math.sqrt(cfg.hidden)),
            f"layer{i}_b2": torch.zeros(cfg.width),
        }
    params |= {
        "lnf_scale": torch.ones(cfg.width),
        "lnf_shift": torch.zeros(cfg.width),
        "unembed": normal(cfg.width, cfg.vocab, std=1 / math.sqrt(cfg.width)),
    }
    return params


def layer_norm(x, scale, shift, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / (var + eps).sqrt() * scale + shift


def sinusoid(length, width, device, dtype):
    place = torch.arange(length, device=device, dtype=torch.float64)[:, None]
    column = torch.arange(width, device=device)[None, :]
    angle = place / 10000 ** ((column // 2 * 2).double() / width)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).to(dtype)


def attention(x, wq, wk, wv, wo, heads):
    batch, length, width = x.shape

    def per_head(w):
        return (x @ w).reshape(batch, length, heads, width // heads).permute(0, 2, 1, 3)

    q, k, v = per_head(wq), per_head(wk), per_head(wv)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * (width // heads) ** -0.5
    later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
    weights = scores.masked_fill(later, float("-inf")).softmax(-1)
    mixed = torch.einsum("bhqk,bhkd->bqhd", weights, v).reshape(batch, length, width)
    return mixed @ wo


def mlp(x, w1, b1, w2, b2):
    return F.gelu(x @ w1 + b1) @ w2 + b2


def forward(params, ids, cfg: Config):
    if ids.shape[1] > cfg.context:
        raise ValueError(f"{ids.shape[1]} ids, the context holds {cfg.context}")
    x = params["tok_emb"][ids]
    x = x + sinusoid(ids.shape[1], cfg.width, ids.device, x.dtype)
    for i in range(cfg.depth):
        p = {name.split("_", 1)[1]: value for name, value in params.items() if name.startswith(f"layer{i}_")}
        h = layer_norm(x, p["ln1_scale"], p["ln1_shift"])
        x = x + attention(h, p["wq"], p["wk"], p["wv"], p["wo"], cfg.heads)
        h = layer_norm(x, p["ln2_scale"], p["ln2_shift"])
        x = x + mlp(h, p["w1"], p["b1"], p["w2"], p["b2"])
    x = layer_norm(x, params["lnf_scale"], params["lnf_shift"])
    return x @ params["unembed"]


def loss_fn(params, ids, cfg: Config):
    """The mean surprise of each id given those before it."""
    logits = forward(params, ids[:, :-1], cfg)
    return F.cross_entropy(logits.reshape(-1, cfg.vocab), ids[:, 1:].reshape(-1))


def next_token(params, ids, cfg: Config, temperature=1.0, top_k=None, generator=None):
    logits = forward(params, ids[:, -cfg.context :], cfg)[:, -1]
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    logits = logits / temperature
    if top_k is not None:
        values, indices = logits.topk(min(top_k, cfg.vocab), dim=-1)
        logits = torch.full_like(logits, float("-inf")).scatter(-1, indices, values)
    return torch.multinomial(logits.softmax(-1), 1, generator=generator)


@torch.no_grad()
def generate(params, ids, steps, cfg: Config, temperature=1.0, top_k=None, generator=None):
    for _ in range(steps):
        ids = torch.cat([ids, next_token(params, ids, cfg, temperature, top_k, generator)], dim=1)
    return ids


class LM(torch.nn.Module):
    """For optimizers and checkpoints, which want a module."""

    def __init__(self, vocab, width, heads, depth, hidden, context):
        super().__init__()
        if width % heads:
            raise ValueError("the width must be a multiple of the number of heads")
        self.cfg = Config(vocab, width, heads, depth, hidden, context)
        self.params = torch.nn.ParameterDict(init_params(self.cfg))

    def forward(self, ids):
        return forward(dict(self.params.items()), ids, self.cfg)

    def generate(self, ids, steps, temperature=1.0, top_k=None):
        return generate(dict(self.params.items()), ids, steps, self.cfg, temperature, top_k)
