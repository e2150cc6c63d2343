"""Scaled dot-product attention: Protocol and oracle."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.masks import additive
from conformkit.spec.protocols import ArrayT, Named

__all__ = ["ScaledDotProductAttention", "attention_weights", "scaled_dot_product_attention", "softmax"]


@runtime_checkable
class ScaledDotProductAttention(Named, Protocol[ArrayT]):
    """Mix value rows by how well each query matches each key.

    Shapes: q (…, Tq, dk), k (…, Tk, dk), v (…, Tk, dv), mask broadcastable to (…, Tq, Tk) → (…, Tq, dv), or a pair
            of this output and the weights (…, Tq, Tk).
    Mask:   boolean, True = may attend; or float, added to the scaled scores.
    Raises: anything, when widths do not fit, there are fewer values than keys, or the mask is too small; more values
            than keys, and a mask that is too large, should raise.
    Source: Vaswani et al. 2017, eq. 1.
    """

    def __call__(
        self, q: ArrayT, k: ArrayT, v: ArrayT, /, mask: ArrayT | None = None
    ) -> ArrayT | tuple[ArrayT, ArrayT]: ...


def softmax(scores: Array) -> Array:
    """Return the softmax over the last axis, computed after subtracting each row's maximum.

    A row that contains only -inf has no maximum to subtract and gives zeros.
    """
    highest = scores.max(axis=-1, keepdims=True)
    found = scores - np.where(np.isfinite(highest), highest, 0.0)
    found = np.exp(found, out=found)  # in place: new memory costs as much as the arithmetic
    total = found.sum(axis=-1, keepdims=True)
    found /= np.where(total == 0.0, 1.0, total)
    return np.asanyarray(found)


def attention_weights(
    q: Array, k: Array, mask: Array | None = None, *, cap: float = 0.0, sinks: Array | None = None
) -> Array:
    """Return softmax(q kᵀ / √dk + mask) over keys, (…, Tq, Tk); with a cap, of cap · tanh(q kᵀ / √dk / cap) + mask.

    `sinks` (H,) are the logits of one more key for each head, which is left out of what is returned.
    """
    scores = np.asanyarray(q, np.float64) @ np.swapaxes(np.asanyarray(k, np.float64), -1, -2)
    scores /= np.sqrt(q.shape[-1])
    if cap:
        scores = cap * np.tanh(scores / cap)
    if mask is not None:
        added = additive(mask)
        fits = np.broadcast_shapes(scores.shape, added.shape) == scores.shape
        scores = np.add(scores, added, out=scores if fits else None)
    if sinks is None:
        return softmax(scores)
    further = np.broadcast_to(np.asanyarray(sinks, np.float64)[:, None, None], (*scores.shape[:-1], 1), subok=True)
    return softmax(np.concatenate([scores, further], axis=-1))[..., :-1]


def scaled_dot_product_attention(
    q: Array, k: Array, v: Array, mask: Array | None = None, *, cap: float = 0.0, sinks: Array | None = None
) -> Array:
    """Return attention_weights(q, k, mask, cap, sinks) v, (…, Tq, dv). A query that sees no key gives 0."""
    return np.asanyarray(attention_weights(q, k, mask, cap=cap, sinks=sinks) @ np.asanyarray(v, np.float64))
