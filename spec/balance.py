"""The loss that keeps experts in equal use: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import log_softmax
from conformkit.spec.protocols import ArrayT_contra, Named

__all__ = ["BalanceLoss", "balance_gradient", "balance_loss"]


@runtime_checkable
class BalanceLoss(Named, Protocol[ArrayT_contra]):
    """Return E Σ f_e P_e: the share of choices that an expert gets, times its mean probability, summed over E experts.

    Shapes: logits (N, E), a router's, of which the `experts_active` largest of a row are chosen → one number
    Source: Fedus et al. 2022, eq. 4–6; Dai et al. 2024, eq. 12–14.
    """

    def __call__(self, logits: ArrayT_contra, experts_active: int, num_experts: int | None = None) -> SupportsFloat: ...


def balance_loss(logits: Array, experts_active: int) -> float:
    """Return the loss of logits (N, E): 1 where all experts are used alike."""
    shares = _shares(logits, experts_active)
    return float(logits.shape[-1] * (shares * np.exp(log_softmax(logits)).mean(axis=0)).sum())


def balance_gradient(logits: Array, experts_active: int) -> Array:
    """Return its derivative with respect to the logits (N, E), where no choice changes."""
    count, experts = logits.shape
    p, shares = np.exp(log_softmax(logits)), _shares(logits, experts_active)
    return np.asarray(experts / count * p * (shares - (p * shares).sum(axis=-1, keepdims=True)))


def _shares(logits: Array, active: int) -> Array:
    """Return the share (E,) of all choices that each expert gets."""
    chosen = np.argsort(-logits, axis=-1, kind="stable")[:, :active]
    return np.bincount(chosen.ravel(), minlength=logits.shape[-1]) / chosen.size
