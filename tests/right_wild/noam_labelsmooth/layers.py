"""Pre-norm layers with masks handed in: True = may attend, broadcastable to (B, H, Tq, Tk)."""

import math

import torch
from torch import Tensor, nn


class CrossAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError("d_model must be divisible by num_heads")
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
        q, k, v = (
            torch.stack(proj(rows).chunk(self.num_heads, dim=-1), dim=1)
            for proj, rows in ((self.w_q, query), (self.w_k, key), (self.w_v, value))
        )  # (B, H, T, dh) each
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is not None and mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask, -torch.inf)
        elif mask is not None:
            scores = scores + mask
        blind = scores.isneginf().all(dim=-1, keepdim=True)
        probs = scores.masked_fill(blind, 0.0).softmax(dim=-1).masked_fill(blind, 0.0)
        out = torch.einsum("bhqk,bhkd->bhqd", probs, v)
        return self.drop(self.w_o(torch.cat(out.unbind(dim=1), dim=-1)))


class FeedForward(nn.Sequential):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__(nn.Linear(d_model, d_ff), nn.GELU(), nn.Dropout(dropout), nn.Linear(d_ff, d_model))


class EncoderLayer(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.ln_attn = nn.LayerNorm(d_model)
        self.attn = CrossAttention(d_model, num_heads, dropout)
        self.ln_ff = nn.LayerNorm(d_model)
        self.ff = FeedForward(d_model, d_ff, dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        h = self.ln_attn(x)
        x = x + self.attn(h, h, h, mask)
        return x + self.ff(self.ln_ff(x))


class DecoderLayer(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.ln_self = nn.LayerNorm(d_model)
        self.self_attn = CrossAttention(d_model, num_heads, dropout)
        self.ln_cross = nn.LayerNorm(d_model)
        self.cross_attn = CrossAttention(d_model, num_heads, dropout)
        self.ln_ff = nn.LayerNorm(d_model)
        self.ff = FeedForward(d_model, d_ff, dropout)

    def forward(
        self, x: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        h = self.ln_self(x)
        x = x + self.self_attn(h, h, h, tgt_mask)
        x = x + self.cross_attn(self.ln_cross(x), memory, memory, memory_mask)
        return x + self.ff(self.ln_ff(x))
