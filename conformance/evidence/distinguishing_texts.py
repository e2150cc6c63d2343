"""Texts in which a lost position changes what follows, and models that choose the last id of their vocabulary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["exchange", "with_rare_ends"]

_FILLERS = 3
"""Ids between the ends: attention then goes to an end that fits better than these, however long the text is."""


def with_rare_ends(ids: Array, draw: Draw) -> Array:
    """Make the first and the last id of every other row of ids (B, T) two that occur nowhere else in it.

    Those between are few, and of the same row. Among hundreds of different ones, a single lost id seldom matters.
    """
    for row in ids[::2]:
        own = np.unique(row)
        own = own[draw.permutation(len(own))]
        if len(own) > _FILLERS and len(row) > 2 * _FILLERS:
            fillers = own[2 : 2 + _FILLERS]
            row[0], row[-1] = own[0], own[1]
            row[1:-1] = fillers[draw.ids(len(fillers), len(row) - 2)]
    return ids


def exchange(instance: Instance, tables: Sequence[str], one: int, other: int) -> None:
    """Exchange two ids in those of some tables (V, …) that a model has, so that it says one where it said the other.

    Nothing happens where its weights are not bound.
    """
    if not instance.subject.bound.rules or one == other:
        return
    own = instance.read()
    changed = {name: own[name].copy() for name in tables if name in own}
    for table in changed.values():
        table[[one, other]] = table[[other, one]]
    instance.write(changed)
