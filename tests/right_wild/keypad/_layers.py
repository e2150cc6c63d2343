from typing import Optional

import torch
from torch import Tensor, nn

from ._attention import LayerError, MultiheadSelfAttention, WidthError


class PositionwiseFF(nn.Module):
    def __init__(self, embed_dim: int, hidden_dim: int, dropout: float = 0.0) -> None:
        super().__init__()
        if embed_dim <= 0 or hidden_dim <= 0:
            raise WidthError(f"widths must be positive, got {embed_dim} and {hidden_dim}")
        self.lin1 = nn.Linear(embed_dim, hidden_dim)
        self.lin2 = nn.Linear(hidden_dim, embed_dim)
        self.act = nn.GELU()
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.lin2(self.dropout(self.act(self.lin1(x))))


class LearnedPositions(nn.Module):
    def __init__(self, embed_dim: int, max_len: int) -> None:
        super().__init__()
        if embed_dim <= 0 or max_len <= 0:
            raise WidthError("sizes must be positive")
        self.embedding = nn.Embedding(max_len, embed_dim)

    def forward(self, x: Tensor) -> Tensor:
        if x.size(1) > self.embedding.num_embeddings:
            raise LayerError(f"{x.size(1)} positions, only {self.embedding.num_embeddings} learned")
        return x + self.embedding.weight[: x.size(1)]


class EncoderLayer(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, hidden_dim: int, dropout: float = 0.0, is_causal: bool = False) -> None:
        super().__init__()
        self.attention = MultiheadSelfAttention(embed_dim, num_heads, dropout, is_causal)
        self.feed_forward = PositionwiseFF(embed_dim, hidden_dim, dropout)
        self.norm1 = nn.LayerNorm(embed_dim)
        self.norm2 = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        x = x + self.dropout(self.attention(self.norm1(x), key_padding_mask))
        return x + self.dropout(self.feed_forward(self.norm2(x)))
