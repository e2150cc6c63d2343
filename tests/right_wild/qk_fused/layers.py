from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-8) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return x / torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.eps) * self.gain


class Attention(nn.Module):
    """Multi-head self-attention.

    Args:
        dim: width
        num_heads: number of heads
        causal: no position sees a later one
        qk_bias: bias of the projection of queries and keys
        v_bias: bias of the projection of values
    """

    def __init__(self, dim: int, num_heads: int = 8, causal: bool = True, qk_bias: bool = False, v_bias: bool = False,
                 attn_drop: float = 0.0, proj_drop: float = 0.0) -> None:
        super().__init__()
        assert dim % num_heads == 0, "dim should be divisible by num_heads"
        self.num_heads = num_heads
        self.head_dim = dim // num_heads
        self.causal = causal
        self.qk = nn.Linear(dim, 2 * dim, bias=qk_bias)
        self.v = nn.Linear(dim, dim, bias=v_bias)
        self.attn_drop = nn.Dropout(attn_drop)
        self.proj = nn.Linear(dim, dim)
        self.proj_drop = nn.Dropout(proj_drop)

    def forward(self, x: Tensor) -> Tensor:
        B, N, C = x.shape
        q, k = self.qk(x).reshape(B, N, 2, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4).unbind(0)
        v = self.v(x).reshape(B, N, self.num_heads, self.head_dim).transpose(1, 2)
        attn = (q * self.head_dim**-0.5) @ k.transpose(-2, -1)
        if self.causal:
            attn = attn.masked_fill(torch.ones(N, N, dtype=torch.bool, device=x.device).triu(diagonal=1), -math.inf)
        attn = self.attn_drop(attn.softmax(dim=-1))
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        return self.proj_drop(self.proj(x))


class GatedFeedForward(nn.Module):
    """down(silu(gate(x)) * up(x)), with biases."""

    def __init__(self, dim: int, hidden: int, drop: float = 0.0) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, hidden)
        self.up = nn.Linear(dim, hidden)
        self.down = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(drop)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.drop(F.silu(self.gate(x)) * self.up(x)))


class SinusoidalEmbedding(nn.Module):
    def __init__(self, dim: int, max_positions: int) -> None:
        super().__init__()
        angles = torch.outer(
            torch.arange(max_positions, dtype=torch.float64),
            torch.exp(-math.log(10000.0) / dim * torch.arange(0, dim, 2, dtype=torch.float64)),
        )
        table = torch.stack((angles.sin(), angles.cos()), dim=2).reshape(max_positions, -1)[:, :dim]
        self.register_buffer("table", table.float(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.table.shape[0]:
            raise ValueError(f"sequence length {x.shape[1]} > max_positions {self.table.shape[0]}")
        return x + self.table[: x.shape[1]].to(x.dtype)


class EncoderOrDecoderBlock(nn.Module):
    def __init__(self, dim: int, num_heads: int, hidden: int, causal: bool = True, drop: float = 0.0) -> None:
        super().__init__()
        self.norm1 = RMSNorm(dim)
        self.attn = Attention(dim, num_heads, causal, proj_drop=drop)
        self.norm2 = RMSNorm(dim)
        self.mlp = GatedFeedForward(dim, hidden, drop)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        x = x + self.mlp(self.norm2(x))
        return x
