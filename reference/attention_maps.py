"""Who looks at whom: the attention weights of every layer and head for one text.

    A = softmax(Q Kᵀ / √dh + M) ∈ ℝ^(T×T)        row t: how much position t takes from each position up to t

What is above the diagonal is exactly 0: the model does not see it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.generation import _evaluating
from conformkit.reference.kv_cache import project
from conformkit.reference.linear_attention import linear_heads, linear_weights
from conformkit.reference.masks import causal_mask, combine_masks
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.scores import shaped_weights, unscaled_queries

__all__ = ["attention_maps", "own_weights", "weights_of"]


@torch.no_grad()
def attention_maps(model: TinyTransformerLM, ids: Tensor) -> list[Tensor]:
    """Return the weights of each layer, without dropout.

    Shapes: ids (B, T) → for each layer (B, H, T, T)
    Raises: whatever the model refuses.
    """
    inputs: list[tuple[MultiHeadAttention, Tensor]] = []
    hooks = [
        module.register_forward_pre_hook(lambda attention, given: inputs.append((attention, given[0])))
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    ]
    try:
        with _evaluating(model):
            model(ids)
    finally:
        for hook in hooks:
            hook.remove()
    return [_weights(attention, x) for attention, x in inputs]


def _weights(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    """Return the weights that a layer gives to its input: (B, T, D) → (B, H, T, T)."""
    return own_weights(attention, x, causal_mask(x.shape[1], device=x.device))


def own_weights(attention: MultiHeadAttention, x: Tensor, mask: Tensor | None) -> Tensor:
    """Return the weights of self-attention under a mask, and under what its variant hides or adds.

    Shapes: x (B, T, D), mask broadcastable to (B, H, T, T) → (B, H, T, T)
    """
    q, k, _ = project(attention, x)  # (B, H, T, dh), (B, Hkv, T, dh)
    return weights_of(attention, q, k, combine_masks(mask, attention.variant_mask(x)))


def weights_of(attention: MultiHeadAttention, q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Return the weights of a layer's queries and keys, as its variant and its kernel score them.

    Shapes: q (B, H, Tq, dh), k (B, Hkv, Tk, dh), mask broadcastable to (B, H, Tq, Tk) → (B, H, Tq, Tk)
    """
    k = k.repeat_interleave(attention.num_heads // attention.kv_heads, dim=1)  # (B, H, Tk, dh)
    if attention.kernel is linear_heads:
        return linear_weights(q, k)
    q = unscaled_queries(q, attention.variant)  # (B, H, Tq, dh)
    return shaped_weights(q, k, mask, attention.variant.score_cap, attention.sink_logits())  # (B, H, Tq, Tk)
