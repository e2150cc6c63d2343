"""Heads are eight wide, whatever the model: wider ones have more of them. Norms without shift, rotation of neighbors."""

import torch
from torch import nn

WIDE = 8


def turned(x):
    """Rotate neighbors as complex numbers, (…, T, 8)."""
    pairs = torch.view_as_complex(
        x.float().unflatten(-1, (-1, 2)) if x.dtype == torch.float16 else x.unflatten(-1, (-1, 2))
    )
    rates = 10000.0 ** (-torch.arange(0, WIDE, 2, dtype=torch.float64, device=x.device) / WIDE)
    angles = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)[:, None] * rates
    turns = torch.polar(torch.ones_like(angles), angles).to(pairs.dtype)
    return torch.view_as_real(pairs * turns).flatten(-2).to(x.dtype)


class Eights(nn.Module):
    def __init__(self, width):
        super().__init__()
        if width % WIDE:
            raise ValueError(f"a width of {width} is no multiple of {WIDE}")
        self.maps = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x):
        rows, length, _ = x.shape
        q, k, v = (m(x).view(rows, length, -1, WIDE).transpose(1, 2) for m in self.maps[:3])
        scores = turned(q) @ turned(k).transpose(-2, -1) / WIDE**0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.maps[3](mixed.transpose(1, 2).flatten(2))
