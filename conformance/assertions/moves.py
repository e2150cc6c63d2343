"""The right numbers in the wrong places: an axis in another order, two axes exchanged, memory read otherwise."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from conformkit.conformance.assertions.agreement import agree
from conformkit.conformance.findings.relation import How, Relation
from conformkit.spec.arrays import Array

__all__ = ["move"]

_AXES = 4
"""Arrays with more axes are not read in another order."""


def move(got: Array, want: Array, close: float, names: Sequence[str]) -> Relation | None:
    """Return how the numbers of the wanted array lie in the other one; None where they do not."""
    if np.ptp(want) <= close:
        return None
    for axis in range(got.ndim - 1, -1, -1):
        found = _along(np.moveaxis(got, axis, 0), np.moveaxis(want, axis, 0), close, names[axis])
        if found is not None:
            return found
    if np.abs(np.sort(got, axis=None) - np.sort(want, axis=None)).max() > close:
        return None
    for one, other in itertools.combinations(range(got.ndim), 2):
        turned = np.swapaxes(want, one, other)
        if turned.shape == got.shape and agree(got, turned, close):
            return Relation(How.SWAPPED, names=(names[one], names[other]))
    return Relation(How.MEMORY) if _memory(got, want, close) else None


def _along(got: Array, want: Array, close: float, name: str) -> Relation | None:
    """Return the order along the first axis; each index of `got` is looked for in `want` by one number of it."""
    count = len(got)
    if count < 2 or got[0].size < 2:
        return None
    if agree(got, want[::-1], close):
        return Relation(How.REVERSED, axis=name)
    for by in (1, -1):
        ours, theirs = (got[1:], want[:-1]) if by > 0 else (got[:-1], want[1:])
        if count > 2 and agree(ours, theirs, close):
            return Relation(How.SHIFTED, (float(by),), axis=name)
    direction = np.cos(np.arange(1.0, got[0].size + 1) * 1.7)
    ours, theirs = got.reshape(count, -1) @ direction, want.reshape(count, -1) @ direction
    origin = np.abs(ours[:, None] - theirs[None, :]).argmin(axis=1)
    if (origin == np.arange(count)).all() or not agree(got, want[origin], close):
        return None
    return Relation(How.ORDER, tuple(map(float, origin)), axis=name)


def _memory(got: Array, want: Array, close: float) -> bool:
    """Whether it is the wanted array with its axes in another order, read as if they were in the first one."""
    if not 2 <= got.ndim <= _AXES:
        return False
    orders = itertools.permutations(range(got.ndim))
    return any(
        agree(got, np.transpose(want, order).reshape(got.shape), close)
        or agree(np.transpose(got, order).reshape(-1), want.reshape(-1), close)
        for order in list(orders)[1:]
    )
