"""nn.Unfold and a linear map; sinusoidal positions, SwiGLU and RMSNorm; log-probabilities."""

import math

import torch
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.g = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.g


class Layer(nn.Module):
    def __init__(self, d, h, f):
        super().__init__()
        self.h = h
        self.n1, self.n2 = RMSNorm(d), RMSNorm(d)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.gate, self.up, self.down = (
            nn.Linear(d, f, bias=False),
            nn.Linear(d, f, bias=False),
            nn.Linear(f, d, bias=False),
        )

    def forward(self, x):
        y = self.n1(x)
        q, k, v = (m(y).unflatten(-1, (self.h, -1)).transpose(1, 2) for m in (self.wq, self.wk, self.wv))
        a = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(-1) @ v
        x = x + self.wo(a.transpose(1, 2).flatten(2))
        y = self.n2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class VisionTransformer(nn.Module):
    def __init__(self, image_size, patch_size, channels, num_classes, d_model, num_heads, num_layers, d_ff):
        super().__init__()
        self.cut = nn.Unfold(patch_size, stride=patch_size)
        self.size = image_size
        self.embed = nn.Linear(channels * patch_size**2, d_model)
        self.cls = nn.Parameter(torch.randn(d_model) * 0.02)
        self.blocks = nn.ModuleList([Layer(d_model, num_heads, d_ff) for _ in range(num_layers)])
        self.norm = RMSNorm(d_model)
        self.classifier = nn.Linear(d_model, num_classes)

    @staticmethod
    def places(n, d, like):
        rates = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
        angles = torch.arange(n, dtype=torch.float64)[:, None] * rates
        table = torch.zeros(n, d, dtype=torch.float64)
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : d // 2]
        return table.to(like)

    def forward(self, x):
        if x.shape[-1] != self.size:
            raise ValueError("another size")
        x = self.embed(self.cut(x).mT)
        x = torch.cat([self.cls.expand(len(x), 1, -1), x], 1)
        x = x + self.places(*x.shape[1:], x)
        for block in self.blocks:
            x = block(x)
        return self.classifier(self.norm(x)[:, 0]).log_softmax(-1)
