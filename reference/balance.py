"""A loss that keeps the experts of a router in equal use.

    p = softmax(z)        P_e = mean_n p_ne        f_e = (choices of e) / (N k)        loss = E Σ_e f_e P_e

z ∈ ℝ^(N×E) a router's logits at N positions, k the experts that each goes through. Fedus et al. 2022, eq. 4–6, with
k = 1; Dai et al. 2024, eq. 12–14, for any k.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.errors import SizeError

__all__ = ["balance_loss"]


def balance_loss(logits: Tensor, experts_active: int, num_experts: int | None = None) -> Tensor:
    """Return how unevenly experts are used: 1 where they are used alike, up to E / k.

    Shapes: (…, E) → ()
    Raises: SizeError when there are fewer experts than a position goes through, or not `num_experts`.
    Source: Dai et al. 2024, eq. 12–14.
    """
    experts = logits.shape[-1]
    if not 1 <= experts_active <= experts:
        raise SizeError("experts_active", experts_active, f"1 to the number of experts, {experts}")
    if num_experts not in {None, experts}:
        raise SizeError("the width of the logits", experts, f"num_experts = {num_experts}")
    z = logits.reshape(-1, experts).to(torch.promote_types(logits.dtype, torch.float32))  # (N, E)
    chosen = z.topk(experts_active, dim=-1).indices  # (N, k)
    shares = torch.bincount(chosen.flatten(), minlength=experts) / chosen.numel()  # (E,)
    probabilities = z.softmax(dim=-1)  # (N, E)
    return experts * (shares * probabilities.mean(dim=0)).sum()
