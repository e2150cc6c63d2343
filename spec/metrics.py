"""Forms of the loss in reports, and its measurement: Protocols and definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import token_losses

__all__ = ["BitsPerCharacter", "Evaluate", "Perplexity", "bits_per_character", "mean_loss", "perplexity"]


class Perplexity(Protocol):
    """Return exp(loss), for a mean loss in nats. Source: handout §8.3."""

    def __call__(self, loss: Any) -> Any: ...


class BitsPerCharacter(Protocol):
    """Return loss / ln 2 · tokens per character, for a mean loss in nats per token. Source: handout §8.3."""

    def __call__(self, loss: Any, tokens_per_character: float = 1.0) -> Any: ...


class Evaluate(Protocol):
    """Return the mean loss over all targets of all batches, in eval mode, without changing the model.

    Shapes: batches are pairs x, y (B, T) → a number, in nats per token
    Source: handout §8.4; Shakespeare report §3.2.
    """

    def __call__(self, model: Any, batches: Any) -> float: ...


def perplexity(loss: float) -> float:
    """Return the number of equally probable ids that would give the same loss."""
    return math.exp(loss)


def bits_per_character(loss: float, tokens_per_character: float = 1.0) -> float:
    """Return the loss per character, in bits."""
    return loss / math.log(2.0) * tokens_per_character


def mean_loss(batches: Sequence[tuple[Array, Array]]) -> float:
    """Return the mean over all targets of batches of logits (B, T, V) and targets (B, T)."""
    return float(np.concatenate([token_losses(logits, targets).ravel() for logits, targets in batches]).mean())
