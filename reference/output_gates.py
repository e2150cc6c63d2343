"""A gate on what attention's heads give.

    y = W_o (σ(W_g x) ⊙ [head_1 … head_H])        W_g ∈ ℝ^((H·dh)×D), or ℝ^(H×D): one number for all of a head

Qiu et al. 2025, §2.2: of all places for a gate, the one behind the heads helps most.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformkit.spec.variants import Variant

__all__ = ["gate_for", "gated"]


def gate_for(d_model: int, num_heads: int, head_width: int, variant: Variant) -> nn.Linear | None:
    """Return the layer that computes the logits of a gate; None where the variant has none."""
    if variant.output_gate == "none":
        return None
    per_head = head_width if variant.output_gate == "features" else 1
    return nn.Linear(d_model, num_heads * per_head, bias=variant.qkv_bias)


def gated(rows: Tensor, logits: Tensor) -> Tensor:
    """Multiply each feature by its gate, or by that of its head.

    Shapes: rows (…, T, H·dh), logits (…, T, H·dh) or (…, T, H) → (…, T, H·dh)
    """
    share = torch.sigmoid(logits)  # (…, T, H·dh) or (…, T, H)
    return rows * share.repeat_interleave(rows.shape[-1] // share.shape[-1], dim=-1)
