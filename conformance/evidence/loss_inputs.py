"""Logits and targets on which losses are judged."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.spec.arrays import Array

__all__ = ["PAD", "every_size", "example", "one_target", "partly_ignored", "scored"]


PAD = 3
"""An id to ignore: neither the default nor 0."""
_NUMBER = 300.0
"""A logit is drawn, sent and normalized: as costly as some hundred multiplications."""


def example(draw: Draw) -> tuple[Array, Array]:
    """Return logits (2, 3, 5) and targets (2, 3)."""
    return draw.values(2, 3, 5), draw.ids(5, 2, 3)


def partly_ignored(draw: Draw, ignored: int) -> tuple[Array, Array]:
    """Return logits (3, 4, 7) and targets (3, 4), of which none, one and three in a row are ignored."""
    targets = draw.ids(7, 3, 4)
    targets[targets == ignored] = (ignored + 1) % 7
    targets[1, 3] = targets[2, 1] = targets[2, 2] = targets[2, 3] = ignored
    return draw.values(3, 4, 7), targets


def one_target(target: int) -> Array:
    """Return a batch (1, 1) of one target."""
    return np.array([[target]])


def every_size(draw: Draw, sizes: Case) -> tuple[Array, Array]:
    """Return logits (B, T, V) and targets (B, T): the last id among them, and the first is none to ignore."""
    batch, tokens, size = sizes["batch"], sizes["tokens"], sizes["vocab_size"]
    targets = draw.ids(size, batch, tokens)
    targets[-1, -1], targets[0, 0] = size - 1, 0
    return draw.values(batch, tokens, size), targets


def scored(sizes: Case) -> float:
    """Estimate the cost of a loss of these sizes."""
    return _NUMBER * sizes["batch"] * sizes["tokens"] * sizes["vocab_size"]
