"""Where in an array numbers are wrong, as an index and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["Region", "axis_words", "region"]

_ROWS = {
    1: ("entries",), 2: ("rows", "columns"), 3: ("rows of the batch", "positions", "features"),
    4: ("rows of the batch", "heads", "positions", "features"),
}  # fmt: skip
_OF_CALLS = ("output", "logits", "gradient", "weights")
_MIN_WRONG_SHARE = 0.5
"""Of the part that holds all wrong numbers at least this share is wrong, or it says nothing."""


@dataclass(frozen=True, slots=True)
class Region:
    """The part of an array that holds all that is wrong; `words` is empty where that is everything."""

    index: Any
    words: str = ""


def axis_words(label: str, ndim: int) -> tuple[str, ...]:
    """Return how the axes are called: those of what a component returns by what they are, others by number."""
    if ndim in (1, 2) or (ndim in _ROWS and label.startswith(_OF_CALLS)):
        return _ROWS[ndim]
    return tuple(f"axis {axis}" for axis in range(ndim))


def region(bad: Array, names: Sequence[str]) -> Region:
    """Return the part of an array that holds what is wrong: for each axis the indices, if not all."""
    index, words = [], []
    for axis, name in enumerate(names):
        others = tuple(a for a in range(bad.ndim) if a != axis)
        wrong = np.flatnonzero(bad.any(axis=others))
        index.append(wrong)
        if len(wrong) < bad.shape[axis]:
            words.append(f"{name} {_indices(wrong, bad.shape[axis])}")
    part = np.ix_(*index)
    if not words or bad[part].mean() < _MIN_WRONG_SHARE:
        return Region(...)
    return Region(part, ", ".join(words))


def _indices(wrong: Array, extent: int) -> str:
    """Return indices in words: `from 3 on`, `up to 4`, `2`, `all but 0`."""
    first, last = int(wrong[0]), int(wrong[-1])
    if len(wrong) == 1:
        return f"{first} (the last)" if first == extent - 1 else f"{first}"
    if len(wrong) == last - first + 1:
        return f"from {first} on" if last == extent - 1 else f"up to {last}" if not first else f"{first} to {last}"
    missing = sorted(set(range(extent)) - set(wrong.tolist()))
    if len(missing) == 1:
        return f"all but {missing[0]}"
    steps = set(np.diff(wrong).tolist())
    if steps == {2} and last >= extent - 2:
        return "with odd numbers" if first == 1 else f"{first}, {first + 2}, …"
    return ", ".join(map(str, wrong[:6])) + (", …" if len(wrong) > 6 else "")
