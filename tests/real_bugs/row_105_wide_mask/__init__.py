"""Attention whose causal mask is float32, whatever the model is."""

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
        mask = torch.full((T, T), -math.inf, device=x.device).triu(1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]) + mask
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, D))
