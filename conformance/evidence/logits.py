"""Ids that go into a language model, and the logits that come out."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.sizes import nearest_allowed
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = [
    "SLIGHT",
    "causal_slack",
    "centered",
    "distinct_ids",
    "draw_ids",
    "every_id",
    "logits_of",
    "logits_of_rows",
    "logsumexp",
    "other_ids",
    "own_tolerance",
    "parts",
    "rows",
    "takes_block_size",
]


SLIGHT = 1e-5
"""The least difference between logits of order 1 that counts as a change: beyond float32's rounding."""


def rows(subject: Subject, wanted: int, *, least: int = 1) -> int:
    """Return the allowed batch size nearest to the wanted one."""
    found = nearest_allowed("batch", wanted, subject.bound.limits)
    if found < least:
        raise NotApplicable.from_sizes(f"its limits allow {found} sequence at a time, this takes {least}")
    return found


def parts(subject: Subject, batch: int) -> int:
    """Return the number of calls for this many rows."""
    return -(-batch // rows(subject, batch))


def draw_ids(model: Instance, draw: Draw, batch: int = 2, tokens: int = 7) -> Array:
    """Draw ids (B, T) within the block size and the declared limits."""
    length = min(model.subject.tokens(tokens), model.sizes["block_size"])
    return draw.ids(model.sizes["vocab_size"], rows(model.subject, batch), length)


def distinct_ids(model: Instance, draw: Draw, tokens: int) -> Array:
    """Draw one row (1, T) of ids, all different as far as the vocabulary allows."""
    length = min(model.subject.tokens(tokens), model.sizes["block_size"], model.sizes["vocab_size"])
    return draw.permutation(model.sizes["vocab_size"])[None, :length]


def every_id(model: Instance, draw: Draw, tokens: int = 6) -> Array:
    """Return ids (B, T) that contain every id of the vocabulary, in random order."""
    vocab_size = model.sizes["vocab_size"]
    length = min(model.subject.tokens(tokens), model.sizes["block_size"])
    return np.resize(draw.permutation(vocab_size), (rows(model.subject, -(-vocab_size // length)), length))


def other_ids(ids: Array, vocab_size: int, draw: Draw) -> Array:
    """Return ids that differ from the given ones everywhere."""
    return (ids + 1 + draw.ids(max(vocab_size - 1, 1), *ids.shape)) % vocab_size


def logits_of(model: Instance, ids: Array, **options: Any) -> Array:
    """Call in eval mode, unless the options say otherwise, and return logits of the right shape."""
    out = model.call(ids, **options).out
    check_shape("the logits", out, (*ids.shape, model.sizes["vocab_size"]))
    return np.asarray(out, np.float64)


def logits_of_rows(model: Instance, ids: Array, **options: Any) -> Array:
    """Return the logits of many rows, in as few calls as the declared limits allow."""
    pieces = np.array_split(ids, parts(model.subject, len(ids)))
    return np.concatenate([logits_of(model, piece, **options) for piece in pieces])


def own_tolerance(model: Instance) -> float:
    """Return how far apart two results of the implementation may be that are equal in exact arithmetic."""
    return model.subject.tolerance(2 * int(model.sizes["num_layers"]) + 1)


def causal_slack(model: Instance) -> float:
    """Return how much influence of a later id may remain: none, or rounding if a mask is applied after the softmax."""
    return 1e-12 if model.subject.precision == "float64" and model.dtype == "float64" else own_tolerance(model)


def takes_block_size(model: Subject) -> None:
    """Raise NotApplicable unless the constructor knows a block size."""
    if "block_size" not in model.bound.construct.names():
        raise NotApplicable("its constructor takes no block_size", lacks="block-size")


def centered(model: Subject, of_logits: Array) -> Array:
    """Return differences or cotangents of logits (…, V); of log-probabilities, without their mean over the ids.

    A log-softmax subtracts one number from all logits of a position: what is left of a difference without its mean is
    the same, and so is the gradient for a cotangent whose mean is 0.
    """
    return of_logits - of_logits.mean(axis=-1, keepdims=True) if model.variant.log_probabilities else of_logits


def logsumexp(logits: Array) -> Array:
    """Return the logarithm of the softmax's denominator, over the last axis."""
    top = logits.max(axis=-1)
    return np.asarray(top + np.log(np.exp(logits - top[..., None]).sum(axis=-1)))
