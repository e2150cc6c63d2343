from typing import Optional

import torch
from torch import Tensor, nn


class LayerError(ValueError):
    """The base of what this package raises."""


class MaskShapeError(LayerError):
    """key_padding_mask is not (batch, keys)."""


class WidthError(LayerError):
    """A width does not fit."""


class MultiheadSelfAttention(nn.Module):
    """Self-attention of all heads.

    Args:
        embed_dim: width of the input and of the output
        num_heads: number of heads, a divisor of embed_dim
        dropout: probability of dropping an attention weight
        is_causal: whether a position is kept from seeing later ones
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, is_causal: bool = False) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise WidthError(f"embed_dim and num_heads must be positive, got {embed_dim} and {num_heads}")
        if embed_dim % num_heads:
            raise WidthError(f"embed_dim={embed_dim} is not divisible by num_heads={num_heads}")
        if not 0 <= dropout < 1:
            raise WidthError(f"dropout={dropout} is not in [0, 1)")
        self.embed_dim, self.num_heads, self.is_causal = embed_dim, num_heads, is_causal
        self.head_dim = embed_dim // num_heads
        self.q = nn.Linear(embed_dim, embed_dim)
        self.k = nn.Linear(embed_dim, embed_dim)
        self.v = nn.Linear(embed_dim, embed_dim)
        self.o = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, key_padding_mask: Optional[Tensor] = None) -> Tensor:
        if x.dim() != 3 or x.size(2) != self.embed_dim:
            raise WidthError(f"expected (batch, length, {self.embed_dim}), got {tuple(x.shape)}")
        batch, length, _ = x.shape
        hide = torch.zeros(1, 1, length, length, dtype=torch.bool, device=x.device)
        if self.is_causal:
            hide = hide | torch.ones(length, length, dtype=torch.bool, device=x.device).triu_(1)
        if key_padding_mask is not None:
            if key_padding_mask.shape != (batch, length):
                raise MaskShapeError(f"expected {(batch, length)}, got {tuple(key_padding_mask.shape)}")
            hide = hide | key_padding_mask.bool()[:, None, None, :]
        shape = (batch, length, self.num_heads, self.head_dim)
        q = self.q(x).reshape(shape).permute(0, 2, 1, 3) * self.head_dim**-0.5
        k = self.k(x).reshape(shape).permute(0, 2, 3, 1)
        v = self.v(x).reshape(shape).permute(0, 2, 1, 3)
        weights = (q @ k).masked_fill(hide, float("-inf"))
        # Rows in which everything is hidden would be 0/0; they get weight 0 everywhere instead.
        weights = torch.softmax(weights, dim=-1).masked_fill(hide, 0.0)
        y = self.dropout(weights) @ v
        return self.o(y.permute(0, 2, 1, 3).reshape(batch, length, self.embed_dim))
