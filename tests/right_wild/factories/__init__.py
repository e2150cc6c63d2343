"""Everything is made by a function; there is one class, and it wraps a closure."""
import math

import torch
from torch import nn
from torch.nn import functional as F


class Fn(nn.Module):
    """A function and the modules and parameters that it uses."""

    def __init__(self, fn, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.fn = fn

    def forward(self, *args, **kwargs):
        return self.fn(self, *args, **kwargs)


def make_attention(d_model, n_heads, *, causal=True, bias=False, p=0.0):
    if d_model % n_heads:
        raise ValueError(f"cannot share {d_model} features among {n_heads} heads")

    def call(self, x):
        # the fused projection is ordered k, q, v
        k, q, v = self.kqv(x).unflatten(-1, (3, n_heads, d_model // n_heads)).unbind(-3)
        s = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(d_model // n_heads)
        if causal:
            s = s + torch.full_like(s[0, 0], -math.inf).triu(1)
        y = torch.einsum("bhqk,bkhd->bqhd", self.drop(F.softmax(s, -1)), v)
        return self.out(y.flatten(-2))

    return Fn(call, kqv=nn.Linear(d_model, 3 * d_model, bias=bias), out=nn.Linear(d_model, d_model, bias=bias),
              drop=nn.Dropout(p))


def make_mlp(d_model, d_hidden, *, act=F.gelu, p=0.0):
    def call(self, x):
        return self.drop(self.down(act(self.up(x))))

    return Fn(call, up=nn.Linear(d_model, d_hidden), down=nn.Linear(d_hidden, d_model), drop=nn.Dropout(p))


def make_positions(d_model, max_len):
    def call(self, x):
        if x.shape[1] > max_len:
            raise ValueError(f"{x.shape[1]} > {max_len}")
        return x + self.table[: x.shape[1]]

    return Fn(call, table=nn.Parameter(0.02 * torch.randn(max_len, d_model)))


def residual(d_model, inner):
    return Fn(lambda self, x: x + self.inner(self.norm(x)), norm=nn.LayerNorm(d_model), inner=inner)


def make_block(d_model, n_heads, d_hidden, *, causal=True, p=0.0):
    return nn.Sequential(
        residual(d_model, make_attention(d_model, n_heads, causal=causal, p=p)),
        residual(d_model, make_mlp(d_model, d_hidden, p=p)),
    )
