"""The model is nothing but one flat nn.Sequential: every residual branch is a layer of its own."""
import math

import torch
from torch import nn


class Branch(nn.Module):
    """x + inner(norm(x))"""

    def __init__(self, width, inner):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = inner

    def forward(self, x):
        return x + self.inner(self.norm(x))


class CausalAttention(nn.Module):
    def __init__(self, width, heads, p=0.0):
        super().__init__()
        if width % heads:
            raise ValueError("width must be divisible by heads")
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.mix = nn.Linear(width, width, bias=False)
        self.drop = nn.Dropout(p)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        s = q @ k.mT * (1 / math.sqrt(q.shape[-1]))
        future = torch.ones(s.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        w = s.masked_fill(future, -math.inf).softmax(-1)
        return self.drop(self.mix((w @ v).transpose(1, 2).flatten(2)))


def mlp(width, hidden, p=0.0):
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width), nn.Dropout(p))


class AddPositions(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        self.table = nn.Parameter(torch.randn(longest, width) * 0.02)

    def forward(self, x):
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"sequence of {x.shape[1]}, longest is {self.table.shape[0]}")
        return x + self.table[: x.shape[1]]


def layer(width, heads, hidden, p=0.0):
    """Two branches: what others call a block."""
    return [Branch(width, CausalAttention(width, heads, p)), Branch(width, mlp(width, hidden, p))]


class Layer(nn.Sequential):
    def __init__(self, width, heads, hidden, p=0.0):
        super().__init__(*layer(width, heads, hidden, p))


class Model(nn.Sequential):
    def __init__(self, vocab, width, heads, depth, hidden, longest, p=0.0):
        layers = [nn.Embedding(vocab, width), AddPositions(width, longest)]
        for _ in range(depth):
            layers += layer(width, heads, hidden, p)
        layers += [nn.LayerNorm(width), nn.Linear(width, vocab)]
        super().__init__(*layers)
        nn.init.normal_(self[0].weight, std=0.02)
