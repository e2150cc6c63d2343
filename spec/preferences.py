"""Learning from preferences between two answers: Protocols and oracles."""

from __future__ import annotations

from typing import Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.protocols import ArrayT_contra, Named

__all__ = ["DpoLoss", "RewardLoss", "dpo_loss", "dpo_slopes", "log_sigmoid", "reward_loss"]


@runtime_checkable
class DpoLoss(Named, Protocol[ArrayT_contra]):
    """Return -ln σ(β h), averaged over pairs.

    h is how much more the policy prefers the chosen answer than the reference does.
    With smoothing ε, the preference is wrong with this probability: -(1 - ε) ln σ(β h) - ε ln σ(-β h).
    Shapes: log-probabilities (B,) of both answers under both models → one number, or the loss (B,) of each pair
    Source: Rafailov et al. 2023, eq. 7; smoothing: Mitchell 2023.
    """

    def __call__(
        self, policy_chosen: ArrayT_contra, policy_rejected: ArrayT_contra, reference_chosen: ArrayT_contra,
        reference_rejected: ArrayT_contra, beta: float = 0.1, label_smoothing: float = 0.0,
    ) -> SupportsFloat: ...  # fmt: skip


@runtime_checkable
class RewardLoss(Named, Protocol[ArrayT_contra]):
    """Return -ln σ(r_chosen - r_rejected), averaged over pairs.

    Shapes: rewards (B,) of both answers → one number, or the loss (B,) of each pair
    Source: Stiennon et al. 2020, §3.4; Ouyang et al. 2022, eq. 1.
    """

    def __call__(self, chosen: ArrayT_contra, rejected: ArrayT_contra) -> SupportsFloat: ...


def dpo_loss(logs: Array, *, beta: float = 0.1, label_smoothing: float = 0.0) -> Array:
    """Return the loss (B,) of each pair; logs (4, B) are the four arguments in their order."""
    margin = beta * _preference(logs)
    return np.asarray(-(1.0 - label_smoothing) * log_sigmoid(margin) - label_smoothing * log_sigmoid(-margin))


def dpo_slopes(logs: Array, *, beta: float = 0.1) -> Array:
    """Return the derivatives (2, B) of each pair's loss with respect to the policy's chosen and rejected answers."""
    slope = -beta * np.exp(log_sigmoid(-beta * _preference(logs)))
    return np.stack([slope, -slope])


def reward_loss(chosen: Array, rejected: Array) -> Array:
    """Return the loss (B,) of each pair."""
    return np.asarray(-log_sigmoid(chosen - rejected))


def log_sigmoid(x: Array) -> Array:
    """Return ln σ(x), without overflow."""
    return np.asarray(-np.logaddexp(0.0, -np.asarray(x, np.float64)))


def _preference(logs: Array) -> Array:
    chosen, rejected, reference_chosen, reference_rejected = np.asarray(logs, np.float64)
    return np.asarray((chosen - rejected) - (reference_chosen - reference_rejected))
