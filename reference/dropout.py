"""Dropout in the two places that a constructor's `dropout` leaves alone: attention weights and embeddings.

    heads = (D ∘ softmax(Q Kᵀ / √dk + M)) V      x₀ = D ∘ (E[ids] + PE)      D ∈ {0, 1/(1 - p)}, 0 with probability p

Vaswani et al. 2017, §5.4 (embeddings); nanoGPT has both. Rows
of weights that were dropped no longer sum to 1, their mean over many draws does. A model is built with both rates at 0,
and `place_dropout` sets them, so the contract's constructors stay as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference.attention import scaled_dot_product_attention
from conformkit.reference.sizes import check_rate

__all__ = ["attention_with_dropout", "place_dropout"]


def attention_with_dropout(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, rate: float) -> Tensor:
    """Mix value rows by attention weights of which each is dropped with probability `rate`.

    Shapes: q (…, Tq, dk), k (…, Tk, dk), v (…, Tk, dv), mask broadcastable to (…, Tq, Tk) → (…, Tq, dv)
    Raises: as `scaled_dot_product_attention`.
    Source: Vaswani et al. 2017, eq. 1. The weights are what attention gives for the rows of an identity as values.
    """
    one_hot = torch.eye(k.shape[-2], dtype=v.dtype, device=v.device).expand(*k.shape[:-2], -1, -1)  # (…, Tk, Tk)
    weights = scaled_dot_product_attention(q, k, one_hot, mask)  # (…, Tq, Tk)
    return F.dropout(weights, rate) @ v


def place_dropout(model: nn.Module, *, attention: float = 0.0, embeddings: float = 0.0) -> None:
    """Set the rate of attention weights in all layers of a model, and that of its embeddings.

    Both act in training mode only. Raises: SizeError for a rate that is no probability.
    """
    check_rate(attention)
    check_rate(embeddings)
    for module in model.modules():
        if hasattr(module, "weight_dropout"):
            setattr(module, "weight_dropout", attention)  # noqa: B010 - of a module whose class is not known here
        if isinstance(placed := getattr(module, "embedding_dropout", None), nn.Dropout):
            placed.p = embeddings
