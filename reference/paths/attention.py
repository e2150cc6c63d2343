"""Attention with the arguments of torch's function: a causal flag, a scale, heads that share keys, dropout.

    Y = softmax(s Q Kᵀ + M) V        s = 1/√dk unless it is given

With fewer queries than keys, the causal flag takes queries for the last positions, as a text that is continued needs
it; torch's own takes them for the first.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn import functional as F

from conformkit.reference.attention import attention_weights
from conformkit.reference.masks import causal_mask, combine_masks, mask_scores

__all__ = ["fused_attention"]


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Mix value rows by how well each query matches each key.

    Shapes: query (…, H, Tq, dk), key (…, Hkv, Tk, dk), value (…, Hkv, Tk, dv), Hkv = H unless `enable_gqa`
            → (…, H, Tq, dv)
    Units:  scores are dot products times `scale`; `dropout_p` is the share of weights that are dropped, always.
    Source: torch.nn.functional.scaled_dot_product_attention. Differs: the last query sees all keys; a query that sees
            no key gives 0.
    """
    if enable_gqa:
        served = query.shape[-3] // key.shape[-3]
        key, value = (part.repeat_interleave(served, dim=-3) for part in (key, value))  # (…, H, Tk, d) each
    factor = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query * factor) @ key.transpose(-2, -1)  # (…, H, Tq, Tk)
    own = causal_mask(query.shape[-2], key.shape[-2], device=query.device) if is_causal else None
    mask = combine_masks(attn_mask, own)
    if mask is not None:
        scores = mask_scores(scores, mask)
    weights = attention_weights(scores)
    if dropout_p > 0.0:
        weights = F.dropout(weights, dropout_p)
    return weights @ value  # (…, H, Tq, dv)
