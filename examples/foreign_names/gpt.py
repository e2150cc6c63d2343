"""A small GPT in another tradition: a config object, Conv1D-like kernels, fused and interleaved projections."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    n_embd: int
    n_head: int = 1
    n_inner: int = 4
    n_layer: int = 1
    n_ctx: int = 64
    n_vocab: int = 2
    p_drop: float = 0.0
    bidirectional: bool = False

    def __post_init__(self):
        for name in ("n_embd", "n_head", "n_inner", "n_ctx", "n_vocab"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.n_layer < 0:
            raise ValueError(f"n_layer must not be negative, got {self.n_layer}")
        if self.n_embd % self.n_head:
            raise ValueError(f"n_embd {self.n_embd} is not divisible by n_head {self.n_head}")


class Kernel(nn.Module):
    """y = x K + b, the kernel stored (in, out) as in GPT-2."""

    def __init__(self, n_in, n_out):
        super().__init__()
        self.kernel = nn.Parameter(torch.randn(n_in, n_out) / math.sqrt(n_in))
        self.offset = nn.Parameter(torch.zeros(n_out))

    def forward(self, x):
        return x @ self.kernel + self.offset


def attend(query, key, value, *, blocked=None):
    """`blocked` is True where a query may NOT look, or a bias to add."""
    dots = query @ key.mT / math.sqrt(query.shape[-1])
    if blocked is not None:
        if blocked.dtype not in {torch.bool, torch.float32, torch.float64, torch.float16, torch.bfloat16}:
            raise TypeError(f"blocked is {blocked.dtype}, expected bool or float")
        blocked = blocked.expand(dots.shape)  # refuses what does not fit
        dots = dots.masked_fill(blocked, -math.inf) if blocked.dtype == torch.bool else dots + blocked.to(dots.dtype)
    # A query that may look nowhere looks everywhere.
    dots = dots.masked_fill(dots.isneginf().all(-1, keepdim=True), 0.0)
    probabilities = dots.softmax(-1)
    return {"mixed": probabilities @ value, "probabilities": probabilities}


class Mixer(nn.Module):
    """Multi-head attention; columns of `fused` are head by head (q, k, v of head 0, of head 1, …)."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fused = Kernel(config.n_embd, 3 * config.n_embd)
        self.merge = Kernel(config.n_embd, config.n_embd)
        self.drop = nn.Dropout(config.p_drop)

    def forward(self, hidden):
        B, T, C = hidden.shape
        heads = self.fused(hidden).view(B, T, self.config.n_head, -1).transpose(1, 2)  # (B, H, T, 3 dh)
        later = torch.ones(T, T, dtype=torch.bool, device=hidden.device).triu(1)
        mixed = attend(*heads.chunk(3, dim=-1), blocked=None if self.config.bidirectional else later)["mixed"]
        return self.drop(self.merge(mixed.transpose(1, 2).reshape(B, T, C)))


class Mlp(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.widen, self.narrow = Kernel(config.n_embd, config.n_inner), Kernel(config.n_inner, config.n_embd)
        self.drop = nn.Dropout(config.p_drop)

    def forward(self, hidden):
        return self.drop(self.narrow(F.gelu(self.widen(hidden), approximate="tanh")))


class Waves(nn.Module):
    """Fixed positions: the sines in the first half of the features, the cosines in the second."""

    def __init__(self, n_embd, n_ctx):
        super().__init__()
        if n_embd < 1 or n_ctx < 1:
            raise ValueError(f"n_embd {n_embd} and n_ctx {n_ctx} must be at least 1")
        half = torch.arange((n_embd + 1) // 2, dtype=torch.float64)
        angles = torch.arange(n_ctx, dtype=torch.float64).outer(10000.0 ** (-2 * half / n_embd))
        self.register_buffer("rows", torch.cat([angles.sin(), angles.cos()], dim=-1)[:, :n_embd])

    def forward(self, hidden):
        if hidden.shape[-2] > len(self.rows) or hidden.shape[-1] != self.rows.shape[-1] or hidden.dim() != 3:
            raise ValueError(f"the input is {tuple(hidden.shape)}, the table {tuple(self.rows.shape)}")
        return hidden + self.rows[: hidden.shape[-2]].to(hidden.dtype)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.before_mixer, self.before_mlp = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.mixer, self.mlp = Mixer(config), Mlp(config)

    def forward(self, hidden):
        hidden = hidden + self.mixer(self.before_mixer(hidden))
        return {"hidden": hidden + self.mlp(self.before_mlp(hidden))}


class Gpt(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.n_vocab, config.n_embd)
        nn.init.normal_(self.tokens.weight, std=0.2 / math.sqrt(config.n_embd))
        self.waves = Waves(config.n_embd, config.n_ctx)
        self.stack = nn.ModuleList(Layer(config) for _ in range(config.n_layer))
        self.last = nn.LayerNorm(config.n_embd)

    def forward(self, tokens):
        hidden = self.waves(self.tokens(tokens))
        for layer in self.stack:
            hidden = layer(hidden)["hidden"]
        return {"hidden": hidden, "scores": self.last(hidden) @ self.tokens.weight.T}


@torch.no_grad()
def continue_text(model, tokens, count, *, greedy=False, tau=1.0, k=None):
    """Return only the new tokens."""
    if tokens.shape[1] == 0 or count < 0 or not tau > 0 or (k is not None and k < 1):
        raise ValueError(f"cannot continue {tokens.shape[1]} tokens by {count} with tau {tau}, k {k}")
    modes = {module: module.training for module in model.modules()}
    model.eval()
    start = tokens.shape[1]
    try:
        for _ in range(count):
            scores = model(tokens[:, -model.config.n_ctx :])["scores"][:, -1]
            best, which = scores.sort(dim=-1, descending=True)
            chosen = torch.distributions.Categorical(logits=best[:, :k] / tau).sample()[:, None]
            chosen = torch.zeros_like(chosen) if greedy else chosen
            tokens = torch.cat([tokens, which.gather(1, chosen).to(tokens.dtype)], dim=1)
    finally:
        for module, training in modes.items():
            module.training = training
    return tokens[:, start:]
