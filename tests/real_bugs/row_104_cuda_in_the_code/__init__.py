"""Attention whose mask is made on the device cuda, whatever the device of the model."""

import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (part(x).view(B, T, self.num_heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        hidden = torch.ones(T, T, dtype=torch.bool, device="cuda").triu(1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
        scores = scores.masked_fill(hidden, -math.inf)
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, D))
