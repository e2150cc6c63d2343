"""How many parameters there are, and how many there should be."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.subject.component import Instance

__all__ = ["check_count", "unmatched"]

_Array = tuple[str, Sequence[int]]
_LONGEST = 1500
"""Characters of a list."""


def check_count(instance: Instance) -> None:
    """Check that an instance has as many trainable numbers as its definition, and list what only one side has."""
    if instance.subject.bound.adapters:
        instance.subject.bound.require_weights()
    have, want = instance.count(), sum(math.prod(parameter.shape) for parameter in instance.canonical.values())
    theirs = [(p["name"], p["shape"]) for p in instance.counted]
    ours = [(name, parameter.shape) for name, parameter in instance.canonical.items()]
    yours, wanted = unmatched(theirs, ours)
    check(
        f"it has {have} trainable numbers, expected {want}: {have - want:+d}", have == want,
        f"yours without a counterpart of its shape: {_listed(yours)}",
        f"the definition's without a counterpart of its shape: {_listed(wanted)}",
    )  # fmt: skip


def unmatched(theirs: Iterable[_Array], ours: Iterable[_Array]) -> tuple[list[_Array], list[_Array]]:
    """Return the arrays on either side that are left when those with equal extents, in any order, are paired."""
    waiting: dict[tuple[int, ...], list[_Array]] = defaultdict(list)
    for array in ours:
        waiting[_extents(array)].append(array)
    left = []
    for array in theirs:
        alike = waiting[_extents(array)]
        if alike:
            alike.pop(0)
        else:
            left.append(array)
    return left, [array for alike in waiting.values() for array in alike]


def _extents(array: _Array) -> tuple[int, ...]:
    return tuple(sorted(extent for extent in array[1] if extent > 1))


def _listed(arrays: Sequence[_Array]) -> str:
    return ", ".join(f"{name} {tuple(shape)}" for name, shape in arrays)[:_LONGEST] or "none"
