"""Linear attention: scores without a softmax, so that sums over keys can be made once for all queries.

    y_t = φ(q_t)ᵀ S_t / (φ(q_t)ᵀ z_t)        S_t = Σ_{j ≤ t} φ(k_j) v_jᵀ        z_t = Σ_{j ≤ t} φ(k_j)

φ(x) = elu(x) + 1, which is above 0. Katharopoulos et al. 2020, eq. 8 to 12. It is no approximation of softmax attention
but a definition of its own: the weight of key j is φ(q_t)·φ(k_j) over the sum of these, and nothing is divided by √dk.
Its cost grows as T·dk·dv. S and z are all that a text of any length leaves behind.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference.errors import ShapeError
from conformkit.reference.multi_head_attention import MultiHeadAttention

__all__ = ["linear_attention", "linear_heads", "linear_weights", "place_linear"]

BLOCK = 64
"""Queries whose weights are computed at a time; earlier keys come as sums."""


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, causal: bool = False) -> Tensor:
    """Mix value rows by positive weights that are products of features; `causal` queries are the last positions.

    Shapes: q (…, Tq, dk), k (…, Tk, dk), v (…, Tk, dv) → (…, Tq, dv)
    Source: Katharopoulos et al. 2020, eq. 9. Differs: rows of a block are mixed at once, not one after the other.
    """
    asked, offered = _features(q), _features(k)  # (…, Tq, dk), (…, Tk, dk)
    one = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)  # (…, Tk, dv + 1): the last column sums the weights
    if not causal:
        return _divided(asked @ (offered.transpose(-2, -1) @ one))
    before = k.shape[-2] - q.shape[-2]
    sums = offered[..., :before, :].transpose(-2, -1) @ one[..., :before, :]  # S and z: (…, dk, dv + 1)
    mixed = []
    for start in range(0, max(q.shape[-2], 1), BLOCK):
        rows = asked[..., start : start + BLOCK, :]  # (…, b, dk)
        keys, values = (part[..., before + start : before + start + BLOCK, :] for part in (offered, one))
        weights = (rows @ keys.transpose(-2, -1)).tril()  # (…, b, b)
        mixed.append(rows @ sums + weights @ values)  # (…, b, dv + 1)
        sums = sums + keys.transpose(-2, -1) @ values
    return _divided(torch.cat(mixed, dim=-2))


def linear_weights(q: Tensor, k: Tensor) -> Tensor:
    """Return the causal weights themselves, for a picture: (…, T, dk) twice → (…, T, T)."""
    weights = (_features(q) @ _features(k).transpose(-2, -1)).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


def linear_heads(attention: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Mix the heads of a layer. Raises: ShapeError for a mask: sums over keys can't leave out other keys by row."""
    if mask is not None:
        raise ShapeError("the mask of linear attention", tuple(mask.shape), "none: it hides later keys and no others")
    return linear_attention(q, k, v, causal=attention.causal)


def place_linear(model: nn.Module) -> None:
    """Replace the softmax attention of a model, in all layers."""
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            module.kernel = linear_heads


def _features(x: Tensor) -> Tensor:
    return F.elu(x) + 1


def _divided(mixed: Tensor) -> Tensor:
    """Divide by the sum of weights, which the last column holds: (…, T, dv + 1) → (…, T, dv)."""
    return mixed[..., :-1] / mixed[..., -1:]
