"""The smoothed loss of an encoder-decoder: Protocol and oracle, for each definition in use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED, log_softmax
from conformkit.spec.protocols import ArrayT_contra, Built_co

__all__ = ["READINGS", "LabelSmoothingLoss", "LabelSmoothingLossConstructor", "LabelSmoothingLossModule", "Reading"]


@runtime_checkable
class LabelSmoothingLoss(Protocol[ArrayT_contra]):
    """Average the smoothed surprise at each target, in nats, over the targets that count.

    Construct: (vocab_size, smoothing=0.1, ignore_index=-100).
    Shapes:    logits (B, T, V) and targets (B, T), or logits (N, V) and targets (N,) → one number
    Source:    Vaswani et al. 2017, §5.4; Szegedy et al. 2016, §7.
    """

    def __call__(self, logits: ArrayT_contra, targets: ArrayT_contra, /) -> SupportsFloat: ...


@runtime_checkable
class LabelSmoothingLossModule(LabelSmoothingLoss[ArrayT_contra], Protocol[ArrayT_contra]):
    """The same in PyTorch, where type checkers see the types of `forward` and accept any call of a module."""

    def forward(self, logits: ArrayT_contra, targets: ArrayT_contra, /) -> SupportsFloat: ...


@runtime_checkable
class LabelSmoothingLossConstructor(Protocol[Built_co]):
    """The class LabelSmoothingLoss, or a function that builds one."""

    def __call__(self, vocab_size: int, smoothing: float = 0.1, ignore_index: int = -100) -> Built_co: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """A definition of smoothing: which ids share ε, and whether the shares' entropy is subtracted."""

    all_ids: bool = True
    divergence: bool = False

    def shares(self, targets: Array, size: int, smoothing: float) -> Array:
        """Return q (…, V) of targets (…)."""
        own = np.asarray(targets[..., None] == np.arange(size), np.float64)
        rest = np.full(size, smoothing / size) if self.all_ids else (1.0 - own) * smoothing / (size - 1)
        return np.asarray((1.0 - smoothing) * own + rest)

    def losses(self, logits: Array, targets: Array, smoothing: float) -> Array:
        """Return the loss of each target (…): -Σ q ln p, plus Σ q ln q for a divergence."""
        q = self.shares(targets, logits.shape[-1], smoothing)
        losses = -(q * log_softmax(logits)).sum(axis=-1)
        return np.asarray(losses + _negative_entropy(q) if self.divergence else losses)

    def loss(self, logits: Array, targets: Array, smoothing: float, *, ignore_index: int = IGNORED) -> float:
        """Return the mean over the targets that count."""
        counted = targets != ignore_index
        return float(self.losses(logits[counted], targets[counted], smoothing).mean())

    def gradient(self, logits: Array, targets: Array, smoothing: float, *, ignore_index: int = IGNORED) -> Array:
        """Return the derivative of that mean with respect to the logits: (p - q) / N, 0 where ignored."""
        counted = targets != ignore_index
        q = self.shares(np.where(counted, targets, 0), logits.shape[-1], smoothing)
        return np.asarray((np.exp(log_softmax(logits)) - q) * counted[..., None] / counted.sum())


READINGS = (Reading(), Reading(all_ids=False), Reading(divergence=True), Reading(all_ids=False, divergence=True))
"""The definitions in use, the recommended one first."""


def _negative_entropy(shares: Array) -> Array:
    """Return Σ q ln q, 0 ln 0 being 0."""
    return np.asarray((shares * np.log(np.where(shares > 0.0, shares, 1.0))).sum(axis=-1))
