from __future__ import annotations

import torch
from torch import Tensor, nn

from ._checks import InvalidArgument, features, positive, probability


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(QKᵀ/√dk + M) V. A boolean mask is True where attention is allowed; a float mask is added."""
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise InvalidArgument("q, k and v need a length and a width")
    if q.shape[-1] != k.shape[-1]:
        raise InvalidArgument(f"q has width {q.shape[-1]}, k {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise InvalidArgument(f"{k.shape[-2]} keys, {v.shape[-2]} values")
    scores = torch.matmul(q * q.shape[-1] ** -0.5, k.mT)
    if mask is not None:
        try:
            fits = torch.broadcast_shapes(mask.shape, scores.shape) == scores.shape
        except RuntimeError:
            fits = False
        if not fits:
            raise InvalidArgument(f"a mask of shape {tuple(mask.shape)} for scores of shape {tuple(scores.shape)}")
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        elif mask.is_floating_point():
            scores = scores + mask.to(scores.dtype)
        else:
            raise InvalidArgument(f"a mask must be boolean or float, not {mask.dtype}")
    empty = (scores == float("-inf")).all(dim=-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)
    return torch.matmul(weights, v)


def lower_triangle(length: int, device: torch.device) -> Tensor:
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


class SelfAttention(nn.Module):
    def __init__(self, d_model: int, d_k: int | None = None, d_v: int | None = None, causal: bool = True) -> None:
        super().__init__()
        d_k = d_model if d_k is None else d_k
        d_v = d_model if d_v is None else d_v
        positive(d_model=d_model, d_k=d_k, d_v=d_v)
        self.d_model, self.causal = d_model, causal
        self.query = nn.Linear(d_model, d_k, bias=False)
        self.key = nn.Linear(d_model, d_k, bias=False)
        self.value = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        features(x, self.d_model, 3)
        mask = lower_triangle(x.shape[1], x.device) if self.causal else None
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, causal: bool = True) -> None:
        super().__init__()
        positive(d_model=d_model, num_heads=num_heads)
        probability(dropout=dropout)
        if d_model % num_heads != 0:
            raise InvalidArgument(f"d_model = {d_model} is not a multiple of num_heads = {num_heads}")
        self.d_model, self.num_heads, self.causal = d_model, num_heads, causal
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key = nn.Linear(d_model, d_model, bias=False)
        self.value = nn.Linear(d_model, d_model, bias=False)
        self.output = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        features(x, self.d_model, 3)
        if self.causal:
            past = lower_triangle(x.shape[1], x.device)
            if mask is None:
                mask = past
            elif mask.dtype == torch.bool:
                mask = mask & past
            else:
                mask = mask.masked_fill(~past, float("-inf"))
        heads = scaled_dot_product_attention(
            self._split(self.query(x)), self._split(self.key(x)), self._split(self.value(x)), mask
        )
        merged = heads.transpose(1, 2).reshape(x.shape)
        result: Tensor = self.dropout(self.output(merged))
        return result

    def _split(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[0], x.shape[1], self.num_heads, self.d_model // self.num_heads).transpose(1, 2)
