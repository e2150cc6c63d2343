"""Attention with linear biases whose slopes are a plain attribute."""

import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.slopes = torch.tensor([2.0 ** (-8.0 * (h + 1) / num_heads) for h in range(num_heads)])

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (part(x).view(B, T, self.num_heads, -1).transpose(1, 2) for part in (self.q, self.k, self.v))
        distance = torch.arange(T, device=x.device) - torch.arange(T, device=x.device)[:, None]
        bias = distance.to(x.dtype) * self.slopes[:, None, None]
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1]) + bias
        scores = scores.masked_fill(distance > 0, -math.inf)
        y = torch.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(B, T, D))
