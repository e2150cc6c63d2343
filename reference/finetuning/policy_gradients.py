"""What a policy learns from rewards of its own answers.

    A = (r - mean) / (deviation + ε) over the answers to one prompt        ρ = exp(log π - log π_old)
    loss = -mean of min(ρ A, clip(ρ, 1 - c, 1 + c) A)        d = log π - log ref, k1 = d, k2 = d² / 2, k3 = e^-d - 1 + d

Schulman et al. 2017, eq. 7; Schulman 2020; Shao et al. 2024, §4.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.errors import SizeError

__all__ = ["group_advantages", "kl_estimate", "policy_loss"]

EPSILON = 1e-6


def group_advantages(rewards: Tensor, group_size: int | None = None) -> Tensor:
    """Return how much better each answer is than the others to its prompt, in deviations of their rewards.

    Shapes: rewards (N,), `group_size` in a row answer one prompt, or (prompts, answers) → the same
    Raises: SizeError when there are answers besides whole groups.
    Source: Shao et al. 2024, §4.1.2.
    """
    size = rewards.shape[-1] if group_size is None else group_size
    if size < 1 or rewards.numel() % size:
        raise SizeError("group_size", size, f"a divisor of the number of rewards, {rewards.numel()}")
    groups = rewards.reshape(-1, size)  # (prompts, answers)
    centered = groups - groups.mean(dim=-1, keepdim=True)
    spread = groups.std(dim=-1, keepdim=True, correction=0)  # (prompts, 1)
    return (centered / (spread + EPSILON)).reshape(rewards.shape)


def policy_loss(
    log_probs: Tensor, old_log_probs: Tensor, advantages: Tensor, mask: Tensor, clip: float = 0.2
) -> Tensor:
    """Return minus the clipped gain over the policy that drew the answers, averaged over their ids.

    Shapes: log_probs, old_log_probs, mask (B, T), advantages (B,) or (B, T) → ()
    Source: Schulman et al. 2017, eq. 7; Shao et al. 2024, eq. 3.
    """
    gain = advantages[:, None] if advantages.ndim == 1 else advantages  # (B, 1) or (B, T)
    counted = mask.bool()  # (B, T)
    ratio = (log_probs - old_log_probs).masked_fill(~counted, 0.0).exp()  # (B, T)
    clipped = ratio.clamp(1 - clip, 1 + clip)
    gained = torch.minimum(ratio * gain, clipped * gain)  # (B, T)
    return -gained.masked_fill(~counted, 0.0).sum() / counted.sum().clamp(min=1)


def kl_estimate(log_probs: Tensor, reference_log_probs: Tensor, kind: str = "k3") -> Tensor:
    """Return an estimate of how far the policy is from a reference, at each id that the policy drew.

    Shapes: (B, T) → (B, T)
    Units:  nats. k1 is unbiased, k2 has a low variance, k3 both; none but k1 can be below 0.
    Raises: SizeError for another kind.
    Source: Schulman 2020.
    """
    if kind not in {"k1", "k2", "k3"}:
        raise SizeError("kind", kind, "k1, k2 or k3")
    d = log_probs - reference_log_probs  # (B, T)
    return {"k1": d, "k2": d.square() / 2, "k3": (-d).exp() - 1 + d}[kind]
