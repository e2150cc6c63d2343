import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .cache import Cache, allowed


class Attention(nn.Module):
    def __init__(self, d_model: int, n_heads: int, dropout: float = 0.0):
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{n_heads=} does not divide {d_model=}")
        self.n_heads, self.head_dim, self.p = n_heads, d_model // n_heads, dropout
        self.wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.wo = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        b, t, d = x.shape
        q, k, v = (y.view(b, t, self.n_heads, self.head_dim).transpose(1, 2) for y in self.wqkv(x).chunk(3, -1))
        if cache is not None:
            k, v = cache.extend(k, v)
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=allowed(t, k.shape[2], x.device), dropout_p=self.p if self.training else 0.0
        )
        return self.wo(y.transpose(1, 2).reshape(b, t, d))


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_hidden: int, dropout: float = 0.0):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.down(F.gelu(self.up(x))))


class PositionalEncoding(nn.Module):
    """Sinusoids, added from position `start` on."""

    def __init__(self, d_model: int, max_len: int):
        super().__init__()
        angles = torch.arange(max_len, dtype=torch.float64)[:, None] * torch.exp(
            torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10_000.0) / d_model)
        )
        table = torch.empty(max_len, d_model, dtype=torch.float64)
        table[:, ::2], table[:, 1::2] = angles.sin(), angles.cos()[:, : d_model // 2]
        self.table = table  # no buffer: stays float64, cast when used

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        end = start + x.shape[1]
        if end > len(self.table):
            raise ValueError(f"position {end - 1}, but only {len(self.table)} are known")
        return x + self.table[start:end].to(device=x.device, dtype=x.dtype)


class Block(nn.Module):
    def __init__(self, d_model: int, n_heads: int, d_hidden: int, dropout: float = 0.0):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = Attention(d_model, n_heads, dropout)
        self.ff = FeedForward(d_model, d_hidden, dropout)

    def forward(self, x: Tensor, cache: Cache | None = None) -> Tensor:
        x = x + self.attn(self.norm1(x), cache)
        return x + self.ff(self.norm2(x))
