"""Scaled dot-product attention.

    Y = softmax(Q Kᵀ / √dk + M) V        Q ∈ ℝ^(Tq×dk), K ∈ ℝ^(Tk×dk), V ∈ ℝ^(Tk×dv), M ∈ (ℝ ∪ {-∞})^(Tq×Tk)

Vaswani et al. 2017, eq. 1. We differ in one thing: a query that sees no key gives 0. The formula gives
0/0 there, and the paper is silent.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from conformkit.reference.errors import ShapeError
from conformkit.reference.masks import causal_mask, mask_scores

__all__ = ["causal_mask", "scaled_dot_product_attention"]


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Mix value rows by how well each query matches each key.

    Shapes: q (…, Tq, dk), k (…, Tk, dk), v (…, Tk, dv), mask broadcastable to (…, Tq, Tk) → (…, Tq, dv)
    Units:  scores are dot products over √dk; weights are probabilities over keys.
    Raises: ShapeError when q and k disagree on dk, or k and v on Tk, or the mask does not fit.
            DtypeError for a mask that is neither boolean (True = may attend) nor float (added to the scores).
    Source: Vaswani et al. 2017, eq. 1. Differs: a query that sees no key gives 0; the paper is silent.
    """
    _check_shapes(q, k, v)
    # Dividing the query rather than the score keeps the product inside the range of half precision.
    scores = (q / math.sqrt(q.shape[-1])) @ k.transpose(-2, -1)  # (…, Tq, Tk)
    if mask is not None:
        scores = mask_scores(scores, mask)
    return attention_weights(scores) @ v  # (…, Tq, dv)


def attention_weights(scores: Tensor) -> Tensor:
    """Turn each row of scores into probabilities over keys; a row of nothing but -inf into zeros.

    Shapes: (…, Tq, Tk) → (…, Tq, Tk)
    Source: Goodfellow et al. 2016, §4.1. The softmax is over the last axis: the keys.
    """
    sees_nothing = torch.isneginf(scores).all(dim=-1, keepdim=True)  # (…, Tq, 1)
    # Such a row is set to 0 before the softmax as well as after it: 0/0 would leave NaN in the gradients.
    weights = torch.softmax(scores.masked_fill(sees_nothing, 0.0), dim=-1)  # subtracts each row's maximum itself
    return weights.masked_fill(sees_nothing, 0.0)


def _check_shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.ndim < 2:
            raise ShapeError(f"the shape of {name}", tuple(tensor.shape), "at least (positions, width)")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError("the width of q", q.shape[-1], f"that of k = {k.shape[-1]}")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError("the length of k", k.shape[-2], f"that of v = {v.shape[-2]}")
