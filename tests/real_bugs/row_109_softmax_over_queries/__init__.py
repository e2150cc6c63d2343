"""Attention whose softmax runs over the queries: axis 1 of (B, T, T)."""

import math

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        super().__init__()
        d_k, d_v = d_k or d_model, d_v or d_model
        self.q, self.k = nn.Linear(d_model, d_k, bias=False), nn.Linear(d_model, d_k, bias=False)
        self.v = nn.Linear(d_model, d_v, bias=False)
        self.causal = causal

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(-2, -1) / math.sqrt(self.q.out_features)
        if self.causal:
            later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return torch.softmax(scores, dim=1) @ self.v(x)
