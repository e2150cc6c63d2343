"""What a model learns from a chosen and a rejected answer to the same prompt.

    reward model    loss = -log σ(r_chosen - r_rejected)
    DPO             h = (log π_c - log π_r) - (log ref_c - log ref_r)        loss = -log σ(β h)

Log-probabilities are those of whole answers. Ouyang et al. 2022, eq. 1; Rafailov et al. 2023, eq. 7.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid

__all__ = ["dpo_loss", "reward_loss"]


def reward_loss(chosen: Tensor, rejected: Tensor) -> Tensor:
    """Return how surprised a reward model is by the preferences, averaged over pairs.

    Shapes: chosen, rejected (B,) → ()
    Source: Stiennon et al. 2020, §3.4; Ouyang et al. 2022, eq. 1.
    """
    return -logsigmoid(chosen - rejected).mean()


def dpo_loss(
    policy_chosen: Tensor, policy_rejected: Tensor, reference_chosen: Tensor, reference_rejected: Tensor,
    beta: float = 0.1, label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """Return how surprised a policy is by the preferences, compared with a reference that does not learn.

    Shapes: log-probabilities (B,) of both answers under both models → ()
    Units:  β in 1 / nat: the larger, the closer the policy stays to the reference.
    Source: Rafailov et al. 2023, eq. 7; smoothing: Mitchell 2023.
    """
    preferred = policy_chosen - policy_rejected  # (B,)
    margin = beta * (preferred - (reference_chosen - reference_rejected).detach())  # (B,)
    return -((1 - label_smoothing) * logsigmoid(margin) + label_smoothing * logsigmoid(-margin)).mean()
