"""Forms of the loss in reports, and its measurement: Protocols and definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import token_losses
from conformkit.spec.protocols import ArrayT, ArrayT_contra, Named

__all__ = ["BitsPerCharacter", "Evaluate", "Perplexity", "bits_per_character", "mean_loss", "perplexity"]


@runtime_checkable
class Perplexity(Named, Protocol[ArrayT_contra]):
    """Return exp(loss), for a mean loss in nats. Source: Jurafsky and Martin, chapter 3."""

    def __call__(self, loss: ArrayT_contra) -> SupportsFloat: ...


@runtime_checkable
class BitsPerCharacter(Named, Protocol[ArrayT_contra]):
    """Return loss / ln 2 · tokens per character, for a mean loss in nats per token. Source: Graves 2013."""

    def __call__(self, loss: ArrayT_contra, tokens_per_character: float = 1.0) -> SupportsFloat: ...


@runtime_checkable
class Evaluate(Named, Protocol[ArrayT]):
    """Return the mean loss over all targets of all batches, in eval mode, without changing weights or gradients.

    A model in training mode is in it again afterwards; one in eval mode should be, too.
    Shapes: batches are pairs x, y (B, T) → a number, in nats per token
    Source: nanoGPT, `train.py`, `estimate_loss`.
    """

    def __call__(self, model: Any, batches: list[tuple[ArrayT, ArrayT]]) -> SupportsFloat: ...


def perplexity(loss: float) -> float:
    """Return the number of equally probable ids that would give the same loss."""
    return math.exp(loss)


def bits_per_character(loss: float, tokens_per_character: float = 1.0) -> float:
    """Return the loss per character, in bits."""
    return loss / math.log(2.0) * tokens_per_character


def mean_loss(batches: Sequence[tuple[Array, Array]]) -> float:
    """Return the mean over all targets of batches of logits (B, T, V) and targets (B, T)."""
    return float(np.concatenate([token_losses(logits, targets).ravel() for logits, targets in batches]).mean())
