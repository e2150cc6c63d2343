"""Mixtral by hand: Llama with experts, all of them in one array, and the two largest of each position's logits."""

import torch
from torch import nn
from torch.nn import functional


def turned(x):
    length, half = x.shape[-2], x.shape[-1] // 2
    step = 1e6 ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = torch.arange(length, dtype=x.dtype)[:, None] * step
    one, other = x[..., :half], x[..., half:]
    return torch.cat([one * angle.cos() - other * angle.sin(), other * angle.cos() + one * angle.sin()], -1)


class Layer(nn.Module):
    def __init__(self, width, heads, few, hidden, experts):
        super().__init__()
        self.heads, self.few = heads, few
        self.before, self.between = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, few * width // heads, bias=False)
        self.v = nn.Linear(width, few * width // heads, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.router = nn.Linear(width, experts, bias=False)
        self.gates = nn.Parameter(torch.randn(experts, hidden, width) * 0.1)
        self.ups = nn.Parameter(torch.randn(experts, hidden, width) * 0.1)
        self.downs = nn.Parameter(torch.randn(experts, width, hidden) * 0.1)

    def attend(self, x):
        q, k, v = (f(x).unflatten(-1, (h, -1)).transpose(1, 2)
                   for f, h in ((self.q, self.heads), (self.k, self.few), (self.v, self.few)))  # fmt: skip
        mixed = functional.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        return self.o(mixed.transpose(1, 2).flatten(-2))

    def feed(self, x):
        best, which = self.router(x).topk(2, dim=-1)
        share = torch.zeros_like(self.router(x)).scatter(-1, which, best.softmax(-1))
        inner = functional.silu(torch.einsum("btm,efm->btef", x, self.gates)) * torch.einsum(
            "btm,efm->btef", x, self.ups
        )
        return torch.einsum("bte,btef,emf->btm", share, inner, self.downs)

    def forward(self, x):
        x = x + self.attend(self.before(x))
        return x + self.feed(self.between(x))


class Mixture(nn.Module):
    def __init__(self, vocab, width, heads, few, depth, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.ModuleList(Layer(width, heads, few, hidden, 8) for _ in range(depth))
        self.last = nn.RMSNorm(width, eps=1e-5)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.last(x))
