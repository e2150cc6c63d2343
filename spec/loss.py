"""The loss of a language model: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.protocols import ArrayT_contra, Named

__all__ = ["IGNORED", "CrossEntropy", "cross_entropy", "log_softmax", "loss_gradient", "token_losses"]

IGNORED = -100
"""The target that does not count, unless another one is given."""


@runtime_checkable
class CrossEntropy(Named, Protocol[ArrayT_contra]):
    """Average the surprise at each target, in nats, over the targets that count.

    Shapes: logits (B, T, V) and targets (B, T), or logits (N, V) and targets (N,) → one number
    Source: Radford et al. 2018, eq. 1; smoothing: Szegedy et al. 2016, §7.
    """

    def __call__(
        self, logits: ArrayT_contra, targets: ArrayT_contra, ignore_index: int = -100, label_smoothing: float = 0.0
    ) -> SupportsFloat: ...


def log_softmax(logits: Array) -> Array:
    """Return the logarithm of the softmax over the last axis."""
    shifted = np.asarray(logits, np.float64) - np.max(logits, axis=-1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def token_losses(logits: Array, targets: Array, *, label_smoothing: float = 0.0) -> Array:
    """Return the loss of each target (…), in nats: -Σ q ln p, q = (1 - ε) onehot + ε / V."""
    log_p = log_softmax(logits)  # (…, V)
    own = np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]  # (…)
    return np.asarray(-(1.0 - label_smoothing) * own - label_smoothing * log_p.mean(axis=-1))


def cross_entropy(logits: Array, targets: Array, *, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> float:
    """Return the mean of the losses of all targets that are not ignored."""
    counted = targets != ignore_index
    losses = token_losses(logits[counted], targets[counted], label_smoothing=label_smoothing)
    return float(losses.mean())


def loss_gradient(logits: Array, targets: Array, *, ignore_index: int = IGNORED, label_smoothing: float = 0.0) -> Array:
    """Return the derivative of that mean with respect to the logits: (p - q) / N, 0 where ignored."""
    size, counted = logits.shape[-1], targets != ignore_index
    wanted = np.eye(size)[np.where(counted, targets, 0)]
    wanted = (1.0 - label_smoothing) * wanted + label_smoothing / size
    return np.asarray((np.exp(log_softmax(logits)) - wanted) * counted[..., None] / counted.sum())
