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
from conformkit.reference.scores import shaped_weights, variant_mask

__all__ = ["attention_maps"]


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
    q, k, _ = project(attention, x)  # (B, H, T, dh), (B, Hkv, T, dh)
    k = k.repeat_interleave(attention.num_heads // attention.kv_heads, dim=1)  # (B, H, T, dh)
    if attention.kernel is linear_heads:
        return linear_weights(q, k)
    length, variant = x.shape[1], attention.variant
    own = variant_mask(length, length, attention.num_heads, variant, causal=True, device=x.device)
    mask = combine_masks(causal_mask(length, device=x.device), own)
    assert mask is not None
    return shaped_weights(q, k, mask, variant.score_cap, attention.sink_logits())  # (B, H, T, T)
