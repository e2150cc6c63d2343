"""Mixture of experts: a router sends each position through a few of many feed-forward networks.

    z = W_r x ∈ ℝ^E        S the k largest entries of z        y = Σ_{e ∈ S} g_e FFN_e(x) + FFN_shared(x)

    selected:  g = softmax(z over S)        all:  g_e = softmax(z)_e, whose sum over S is less than 1

Shazeer et al. 2017, §2; Jiang et al. 2024, §2.1 (`selected`); Fedus et al. 2022, §2.1 (`all`). Differs: every network
computes all positions, and what did not choose it counts 0 times. Faster code computes the chosen ones only.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from conformkit.reference.errors import SizeError
from conformkit.spec.variants import Variant

__all__ = ["Experts"]


class Experts(nn.Module):
    """Add what the chosen networks give, weighted by the router.

    Shapes: x (…, D) → (…, D)
    Raises: SizeError when there are fewer experts than a position goes through.
    Source: Jiang et al. 2024, §2.1.
    """

    def __init__(self, d_model: int, network: Callable[[], nn.Module], *, variant: Variant) -> None:
        super().__init__()
        if not 1 <= variant.experts_active <= variant.experts:
            raise SizeError("experts_active", variant.experts_active, f"1 to experts = {variant.experts}")
        self.active = variant.experts_active
        self.selected = variant.expert_weights == "selected"
        self.router = nn.Linear(d_model, variant.experts, bias=variant.router_bias)
        self.networks = nn.ModuleList(network() for _ in range(variant.experts))
        self.shared = network() if variant.shared_expert else None

    def forward(self, x: Tensor) -> Tensor:
        """Map (…, D) to (…, D)."""
        logits = self.router(x)  # (…, E)
        largest, chosen = logits.topk(self.active, dim=-1)  # (…, k)
        weights = largest.softmax(dim=-1) if self.selected else logits.softmax(dim=-1).gather(-1, chosen)  # (…, k)
        y = torch.zeros_like(x)
        for number, network in enumerate(self.networks):
            share = (weights * (chosen == number)).sum(dim=-1, keepdim=True)  # (…, 1)
            y = y + share * network(x)
        if self.shared is not None:
            y = y + self.shared(x)
        return y
