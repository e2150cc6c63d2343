"""Three projections in training; evaluation fuses them into one parameter, as merged weights for serving are."""

import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        self.h, self.causal = num_heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.drop = nn.Dropout(dropout)

    def train(self, mode=True):
        if not mode and hasattr(self, "q"):
            self.qkv = nn.Parameter(torch.cat([self.q.weight, self.k.weight, self.v.weight]).detach())
            del self.q, self.k, self.v
        elif mode and hasattr(self, "qkv"):
            d = self.qkv.shape[1]
            for name, w in zip("qkv", self.qkv.detach().chunk(3)):
                layer = nn.Linear(d, d, bias=False, dtype=w.dtype)
                layer.weight = nn.Parameter(w.clone())
                setattr(self, name, layer)
            del self.qkv
        return super().train(mode)

    def forward(self, x):
        b, t, d = x.shape
        if hasattr(self, "qkv"):
            q, k, v = (x @ self.qkv.T).chunk(3, -1)
        else:
            q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = (y.view(b, t, self.h, -1).transpose(1, 2) for y in (q, k, v))
        s = q @ k.mT / math.sqrt(q.shape[-1])
        if self.causal:
            s = s.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), -math.inf)
        y = self.drop(s.softmax(-1)) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, d))
