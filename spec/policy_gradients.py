"""Learning from rewards: advantages, the clipped loss of a policy, its distance from another. Protocols and oracles."""

from __future__ import annotations

from typing import Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.protocols import ArrayT, ArrayT_contra, Named

__all__ = [
    "KL_KINDS", "GroupAdvantages", "KlEstimate", "PolicyLoss", "group_advantages", "kl_estimate", "policy_objective",
    "policy_slopes",
]  # fmt: skip

KL_KINDS = ("k1", "k2", "k3")
"""The estimators of a Kullback-Leibler divergence, as Schulman 2020 names them."""


@runtime_checkable
class GroupAdvantages(Named, Protocol[ArrayT]):
    """Return how much better each answer is than the others to its prompt: (r - mean) / (deviation + ε).

    Shapes: rewards (N,), `group_size` in a row answer one prompt → (N,); without `group_size`, (prompts, answers)
    Source: Shao et al. 2024, §4.1.2.
    """

    def __call__(self, rewards: ArrayT, group_size: int | None = None) -> ArrayT: ...


@runtime_checkable
class PolicyLoss(Named, Protocol[ArrayT_contra]):
    """Return -min(ρ A, clip(ρ, 1 - c, 1 + c) A), ρ = exp(log_probs - old_log_probs), averaged over ids in the mask.

    Shapes: log_probs, old_log_probs, mask (B, T), advantages (B,), (B, 1) or (B, T) → one number
    Source: Schulman et al. 2017, eq. 7; Shao et al. 2024, eq. 3.
    """

    def __call__(
        self, log_probs: ArrayT_contra, old_log_probs: ArrayT_contra, advantages: ArrayT_contra, mask: ArrayT_contra,
        clip: float = 0.2,
    ) -> SupportsFloat: ...  # fmt: skip


@runtime_checkable
class KlEstimate(Named, Protocol[ArrayT]):
    """Return an estimate of KL(π ‖ reference) at each id that π drew.

    With d = log_probs - reference_log_probs, k1 is d, k2 is d² / 2, and k3 is e^-d - 1 + d.
    Shapes: (B, T) → (B, T)
    Source: Schulman 2020; Shao et al. 2024, eq. 4.
    """

    def __call__(self, log_probs: ArrayT, reference_log_probs: ArrayT, kind: str = "k3") -> ArrayT: ...


def group_advantages(rewards: Array, *, unbiased: bool = False, scaled: bool = True) -> Array:
    """Return advantages (prompts, answers) of such rewards, without ε, 0 where all of a group are equal."""
    centered = rewards - rewards.mean(axis=-1, keepdims=True)
    spread = centered.std(axis=-1, keepdims=True, ddof=int(unbiased and rewards.shape[-1] > 1))
    return np.asarray(centered / np.where(spread > 0, spread, 1.0) if scaled else centered)


def policy_objective(
    log_probs: Array, old_log_probs: Array, advantages: Array, *, clip: tuple[float, float] = (0.2, 0.2)
) -> Array:
    """Return min(ρ A, clip(ρ) A) at each id (B, T), for advantages (B,); the clip is below 1 and above it."""
    low, high = clip
    ratio = np.exp(np.asarray(log_probs, np.float64) - old_log_probs)
    return np.asarray(np.minimum(ratio * advantages[:, None], np.clip(ratio, 1 - low, 1 + high) * advantages[:, None]))


def policy_slopes(
    log_probs: Array, old_log_probs: Array, advantages: Array, *, clip: tuple[float, float] = (0.2, 0.2)
) -> Array:
    """Return the derivative (B, T) of that with respect to each log-probability: 0 where clipping holds it."""
    ratio, gain = np.exp(np.asarray(log_probs, np.float64) - old_log_probs), advantages[:, None]
    held = ((ratio > 1 + clip[1]) & (gain > 0)) | ((ratio < 1 - clip[0]) & (gain < 0))
    return np.asarray(np.where(held, 0.0, ratio * gain))


def kl_estimate(log_probs: Array, reference_log_probs: Array, kind: str) -> Array:
    """Return the estimate at each id."""
    d = np.asarray(log_probs, np.float64) - reference_log_probs
    return np.asarray({"k1": d, "k2": d * d / 2, "k3": np.exp(-d) - 1 + d}[kind])
