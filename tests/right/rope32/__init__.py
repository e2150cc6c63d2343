"""Rotary attention as in GPT-NeoX: the frequencies are a float32 buffer, which follows the module to float64."""

import torch
from torch import nn
from torch.nn import functional as F


def rotate_half(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((-right, left), dim=-1)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model} is no multiple of num_heads = {num_heads}")
        if d_model // num_heads % 2:
            raise ValueError(f"heads of width {d_model // num_heads} have no pairs to turn")
        self.num_heads, self.head_dim = num_heads, d_model // num_heads
        self.causal, self.dropout = causal, dropout
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        inv_freq = 1.0 / (10000 ** (torch.arange(0, self.head_dim, 2).float() / self.head_dim))
        self.register_buffer("inv_freq", inv_freq)

    def rotary(self, x):
        t = torch.arange(x.shape[-2]).type_as(self.inv_freq)
        freqs = torch.outer(t, self.inv_freq)
        angles = torch.cat((freqs, freqs), dim=-1)
        return x * angles.cos() + rotate_half(x) * angles.sin()

    def heads(self, x):
        return x.reshape(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.heads(self.q(x)), self.heads(self.k(x)), self.heads(self.v(x))
        scores = self.rotary(q) @ self.rotary(k).transpose(-2, -1) / self.head_dim**0.5
        if self.causal:
            seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            scores = scores.masked_fill(~seen, float("-inf"))
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        return F.dropout(self.out(mixed), self.dropout, self.training)
