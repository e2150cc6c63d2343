"""Rotary positions on a quarter of each head, as in GPT-NeoX and Pythia; one projection, head by head; a lowest number."""

import torch
from torch import nn


def rotate_half(x):
    left, right = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-right, left), dim=-1)


class NeoXAttention(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, rotary_pct=0.25):
        super().__init__()
        if hidden_size % num_attention_heads:
            raise ValueError(f"hidden_size {hidden_size} is no multiple of num_attention_heads {num_attention_heads}")
        self.num_heads, self.head_size = num_attention_heads, hidden_size // num_attention_heads
        self.rotary_ndims = int(self.head_size * rotary_pct)
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def tables(self, length, device, dtype):
        exponents = torch.arange(0, self.rotary_ndims, 2, dtype=torch.float64) / self.rotary_ndims
        freqs = torch.outer(torch.arange(length, dtype=torch.float64), 10000.0**-exponents)
        angles = torch.cat((freqs, freqs), dim=-1)
        return angles.cos().to(device, dtype), angles.sin().to(device, dtype)

    def turned(self, x, cos, sin):
        rot, rest = x.split([self.rotary_ndims, self.head_size - self.rotary_ndims], dim=-1)
        return torch.cat((rot * cos + rotate_half(rot) * sin, rest), dim=-1)

    def forward(self, x):
        batch, length, width = x.shape
        qkv = self.query_key_value(x).view(batch, length, self.num_heads, 3 * self.head_size).transpose(1, 2)
        query, key, value = qkv.chunk(3, dim=-1)
        cos, sin = self.tables(length, x.device, x.dtype)
        scores = self.turned(query, cos, sin) @ self.turned(key, cos, sin).transpose(-1, -2) * self.head_size**-0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, torch.finfo(scores.dtype).min).softmax(-1)
        return self.dense((weights @ value).transpose(1, 2).reshape(batch, length, width))
