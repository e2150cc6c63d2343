"""Attention as in Qwen 3-Next: the queries' projection holds, head by head, each query and the gate of its output."""

import torch
import torch.nn.functional as F
from torch import nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)


class GatedAttention(nn.Module):
    def __init__(self, hidden_size, heads):
        super().__init__()
        if heads % 2 or hidden_size % heads or hidden_size // heads % 2:
            raise ValueError(f"{hidden_size} features for {heads} heads: want an even number, each of an even width")
        self.head_dim = hidden_size // heads
        self.q_proj = nn.Linear(hidden_size, 2 * hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, hidden_size // 2, bias=False)
        self.v_proj = nn.Linear(hidden_size, hidden_size // 2, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.q_norm, self.k_norm = Norm(self.head_dim), Norm(self.head_dim)

    def turned(self, x):
        half = self.head_dim // 2
        steps = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)
        rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64, device=x.device) / half)
        angles = torch.outer(steps, rates)
        first, second = x[..., :half], x[..., half:]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def forward(self, x):
        shape = (*x.shape[:-1], -1, self.head_dim)
        query, gate = self.q_proj(x).view(*x.shape[:-1], -1, 2 * self.head_dim).chunk(2, dim=-1)
        query = self.turned(self.q_norm(query).transpose(1, 2))
        key = self.turned(self.k_norm(self.k_proj(x).view(shape)).transpose(1, 2))
        value = self.v_proj(x).view(shape).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(
            query, key.repeat_interleave(2, 1), value.repeat_interleave(2, 1), is_causal=True
        )
        return self.o_proj(mixed.transpose(1, 2).flatten(-2) * gate.flatten(-2).sigmoid())
