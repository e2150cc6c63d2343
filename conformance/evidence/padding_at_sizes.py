"""Inputs of any size some of whose positions are padding, at the end of each sequence."""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.dependence import causal, keys_mask
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.padding import padding_mask, target_mask

__all__ = [
    "with_hidden_memory",
    "with_hidden_positions",
    "with_hidden_target_and_memory",
    "with_masks",
    "with_padded_ids",
    "with_padded_text",
]

Inputs = tuple[Array, ...]
_FEW_PADS = 4


def with_hidden_memory(_instance: Instance, inputs: Inputs, draw: Draw) -> tuple[Inputs, EllipsisType]:
    """Return query, key and value of cross-attention, and a mask of the memory."""
    query, key, value = inputs
    return (query, key, value, keys_mask(_real(draw, key, least=1))), ...


def with_hidden_positions(_instance: Instance, inputs: Inputs, draw: Draw) -> tuple[Inputs, EllipsisType]:
    """Return an encoder's input and a mask of it."""
    return (inputs[0], keys_mask(_real(draw, inputs[0], least=1))), ...


def with_hidden_target_and_memory(_instance: Instance, inputs: Inputs, draw: Draw) -> tuple[Inputs, EllipsisType]:
    """Return a decoder's inputs, a causal mask that hides padding of the target, and one of the memory."""
    x, memory = inputs
    return (x, memory, causal(x, _real(draw, x, least=1)), keys_mask(_real(draw, memory, least=1))), ...


def with_padded_ids(instance: Instance, inputs: Inputs, draw: Draw) -> tuple[Inputs, Array]:
    """Return source and target with padding and their masks; real positions of the target are compared."""
    pad = instance.sizes["pad_id"]
    src, tgt = (np.where(_real(draw, ids, least=few), ids, pad) for ids, few in zip(inputs[:2], (1, 0), strict=True))
    return (src, tgt, padding_mask(src, pad), target_mask(tgt, pad)), tgt != pad


def with_padded_text(instance: Instance, inputs: Inputs, draw: Draw) -> tuple[Inputs, Array]:
    """Return an encoder's ids with padding, their segments and a mask; real positions are compared."""
    ids, segments = inputs[:2]
    real = _real(draw, ids)
    masks = (keys_mask(real),) if instance.subject.offers("masks") else ()
    return (np.where(real, ids, instance.sizes["pad_id"]), segments, *masks), real


def with_masks(instance: Instance, inputs: Inputs, _draw: Draw) -> tuple[Inputs, EllipsisType]:
    """Return source and target as they are, with their masks."""
    src, tgt = inputs[:2]
    pad = instance.sizes["pad_id"]
    return (src, tgt, padding_mask(src, pad), target_mask(tgt, pad)), ...


def _real(draw: Draw, rows: Array, *, least: int = 0) -> Array:
    """Return which positions of rows (B, T, …) are real: a drawn number of first ones.

    In one of several rows all are, in a single one nearly all, but for `least` and a few more: the end of a long row
    must not be far from it, and there must be padding where a deep stack loses its mask.
    """
    batch, length = rows.shape[:2]
    lengths = 1 + draw.ids(max(length - 1, 1), batch, 1)
    if batch > 1:
        lengths[draw.integer(0, batch - 1)] = length
    else:
        lengths = np.maximum(length - least - draw.ids(_FEW_PADS, 1, 1), 1)
    return np.arange(length) < lengths
