"""vmap over batch and heads; the causal restriction by an additional -inf column that is dropped again."""

import torch
from torch import nn

from .core import one_head


def scaled_dot_product_attention(q, k, v, mask=None):
    bias = torch.zeros((), dtype=q.dtype, device=q.device)
    if mask is not None:
        bias = torch.where(mask, 0.0, -torch.inf).to(q.dtype) if mask.dtype == torch.bool else mask.to(q.dtype)
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    bias = bias.expand(*lead, q.shape[-2], k.shape[-2])
    f = one_head
    for _ in lead:
        f = torch.vmap(f)
    return f(q.expand(*lead, *q.shape[-2:]), k.expand(*lead, *k.shape[-2:]), v.expand(*lead, *v.shape[-2:]), bias)


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        super().__init__()
        dk, dv = d_k or d_model, d_v or d_model
        self.split = (dk, dk, dv)
        self.qkv = nn.Linear(d_model, 2 * dk + dv, bias=False)
        self.causal = causal

    def forward(self, x):
        q, k, v = self.qkv(x).split(self.split, -1)
        t = x.shape[1]
        return scaled_dot_product_attention(
            q, k, v, torch.ones(t, t, dtype=bool, device=x.device).tril() if self.causal else None
        )


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError
        self.n, self.causal = num_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(x).view(b, t, self.n, 3, d // self.n).permute(3, 0, 2, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        mask = torch.ones(t, t, dtype=bool, device=x.device).tril() if self.causal else None
        y = scaled_dot_product_attention(q, k, v, mask)
        return self.drop(self.out(y.permute(0, 2, 1, 3).reshape(b, t, d)))
