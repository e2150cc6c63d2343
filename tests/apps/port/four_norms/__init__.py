"""Gemma 2 with the 1 of its norms stored in the weights, and fused projections."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def rms(x, w):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def rope(x):
    w = x.shape[-1]
    f = torch.exp(torch.arange(0, w, 2, dtype=x.dtype) * (-math.log(10000.0) / w))
    a = torch.arange(x.shape[1], dtype=x.dtype)[:, None, None] * f
    u, v = x[..., : w // 2], x[..., w // 2 :]
    return torch.cat([u * a.cos() - v * a.sin(), v * a.cos() + u * a.sin()], -1)


class Block(nn.Module):
    def __init__(self, d, h, kv, dh, f, local):
        super().__init__()
        self.h, self.kv, self.dh, self.local = h, kv, dh, local
        self.qkv = nn.Parameter(torch.randn((h + 2 * kv) * dh, d) * 0.1)
        self.o = nn.Parameter(torch.randn(d, h * dh) * 0.1)
        self.gate_up = nn.Parameter(torch.randn(2 * f, d) * 0.1)
        self.down = nn.Parameter(torch.randn(d, f) * 0.1)
        self.pre_a = nn.Parameter(torch.ones(d))
        self.post_a = nn.Parameter(torch.ones(d))
        self.pre_f = nn.Parameter(torch.ones(d))
        self.post_f = nn.Parameter(torch.ones(d))

    def attention(self, x):
        b, n, _ = x.shape
        q, k, v = (x @ self.qkv.T).split([self.h * self.dh, self.kv * self.dh, self.kv * self.dh], -1)
        q = rope(q.view(b, n, self.h, self.dh))
        k = rope(k.view(b, n, self.kv, self.dh)).repeat_interleave(self.h // self.kv, 2)
        v = v.view(b, n, self.kv, self.dh).repeat_interleave(self.h // self.kv, 2)
        s = torch.einsum("bihd,bjhd->bhij", q, k) * self.dh**-0.5
        s = 50.0 * torch.tanh(s / 50.0)
        i, j = torch.arange(n)[:, None], torch.arange(n)[None]
        seen = j <= i
        if self.local:
            seen = seen & (j > i - 4096)
        y = torch.einsum("bhij,bjhd->bihd", s.masked_fill(~seen, -torch.inf).softmax(-1), v)
        return y.reshape(b, n, -1) @ self.o.T

    def mlp(self, x):
        g, u = (x @ self.gate_up.T).chunk(2, -1)
        return (F.gelu(g, approximate="tanh") * u) @ self.down.T

    def forward(self, x):
        x = x + rms(self.attention(rms(x, self.pre_a)), self.post_a)
        return x + rms(self.mlp(rms(x, self.pre_f)), self.post_f)


class Gemma2(nn.Module):
    def __init__(self, vocab, d, h, kv, dh, depth, f):
        super().__init__()
        self.embedder = nn.Parameter(torch.randn(vocab, d) * 0.1)
        self.blocks = nn.ModuleList(Block(d, h, kv, dh, f, i % 2 == 0) for i in range(depth))
        self.last = nn.Parameter(torch.ones(d))

    def forward(self, ids):
        x = self.embedder[ids] * math.sqrt(self.embedder.shape[1])
        for block in self.blocks:
            x = block(x)
        z = rms(x, self.last) @ self.embedder.T
        return 30.0 * torch.tanh(z / 30.0)
