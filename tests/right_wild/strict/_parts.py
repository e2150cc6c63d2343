from __future__ import annotations

import torch
from torch import Tensor, nn

from ._attention import MultiHeadAttention
from ._checks import InvalidArgument, features, positive, probability


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        positive(d_model=d_model, d_ff=d_ff)
        probability(dropout=dropout)
        self.d_model = d_model
        self.up = nn.Linear(d_model, d_ff)
        self.activation = nn.GELU()
        self.dropout = nn.Dropout(dropout)
        self.down = nn.Linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        features(x, self.d_model)
        result: Tensor = self.down(self.dropout(self.activation(self.up(x))))
        return result


class PositionalEncoding(nn.Module):
    """PE[p, 2i] = sin(p / 10000^(2i/D)), PE[p, 2i+1] = cos of the same."""

    def __init__(self, d_model: int, max_len: int) -> None:
        super().__init__()
        positive(d_model=d_model, max_len=max_len)
        self.d_model, self.max_len = d_model, max_len

    def forward(self, x: Tensor) -> Tensor:
        features(x, self.d_model)
        if x.ndim < 2:
            raise InvalidArgument("an input without positions")
        if x.shape[-2] > self.max_len:
            raise InvalidArgument(f"{x.shape[-2]} positions, at most {self.max_len}")
        p = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device).unsqueeze(-1)
        i = torch.arange((self.d_model + 1) // 2, dtype=torch.float64, device=x.device)
        angles = p * torch.pow(10000.0, -2.0 * i / self.d_model)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[:, : self.d_model]
        return x + table.to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, causal: bool = True
    ) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = nn.LayerNorm(d_model)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), mask)
        result: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return result
