"""Attention that turns the first half of each head by tables that its caller makes, one table for the whole model."""

import torch
from torch import nn


def tables(rotary_dim, length):
    rates = 10000.0 ** (-torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


def turned(x, cos, sin):
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat([-high, low], -1) * sin


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % (4 * heads):
            raise ValueError(f"a width of {width} gives {heads} heads no half that rotates in pairs")
        self.heads = heads
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width, bias=False)
        self.v = nn.Linear(width, width, bias=False)
        self.o = nn.Linear(width, width, bias=False)

    def forward(self, x, cos, sin):
        rows, length, width = x.shape
        part = cos.shape[-1]
        q, k, v = (m(x).view(rows, length, self.heads, -1).transpose(1, 2) for m in (self.q, self.k, self.v))
        q, k = (torch.cat([turned(h[..., :part], cos, sin), h[..., part:]], -1) for h in (q, k))
        scores = q @ k.mT * (width // self.heads) ** -0.5
        scores = scores + torch.full((length, length), float("-inf"), dtype=x.dtype, device=x.device).triu(1)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, length, width))
