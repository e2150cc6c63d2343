"""Llama 3.1's scaled frequencies, one by one in a loop; complex rotation; two query heads per key/value head."""

import math

import torch
from torch import nn


def scaled(freqs, factor=8.0, low=1.0, high=4.0, old_context_len=8192):
    longest, shortest = old_context_len / low, old_context_len / high
    new = []
    for freq in freqs.tolist():
        wavelen = 2 * math.pi / freq
        if wavelen < shortest:
            new.append(freq)
        elif wavelen > longest:
            new.append(freq / factor)
        else:
            smooth = (old_context_len / wavelen - low) / (high - low)
            new.append((1 - smooth) * freq / factor + smooth * freq)
    return torch.tensor(new, dtype=freqs.dtype)


class Attention(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        if dim % n_heads or n_heads % 2 or dim // n_heads % 2:
            raise ValueError(f"{dim} features, {n_heads} heads: both are even, and the second divides the first")
        self.n_heads, self.n_kv, self.head_dim = n_heads, n_heads // 2, dim // n_heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, self.n_kv * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, self.n_kv * self.head_dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def turned(self, x):
        freqs = 500000.0 ** (-torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim)
        angles = torch.outer(torch.arange(x.shape[1], dtype=torch.float64), scaled(freqs))
        cis = torch.polar(torch.ones_like(angles), angles)[:, None].to(x.device)
        pairs = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * cis).flatten(-2).to(x.dtype)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.turned(self.wq(x).view(batch, length, self.n_heads, self.head_dim))
        k = self.turned(self.wk(x).view(batch, length, self.n_kv, self.head_dim))
        v = self.wv(x).view(batch, length, self.n_kv, self.head_dim)
        q = q.view(batch, length, self.n_kv, 2, self.head_dim)
        scores = torch.einsum("bqgrd,bkgd->bgrqk", q, k) / math.sqrt(self.head_dim)
        scores = scores + torch.full((length, length), float("-inf"), dtype=x.dtype, device=x.device).triu(1)
        mixed = torch.einsum("bgrqk,bkgd->bqgrd", scores.softmax(-1), v)
        return self.wo(mixed.reshape(batch, length, -1))
