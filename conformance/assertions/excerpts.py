"""A section of two arrays that differ too much, around the entry with the largest error, for display."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["Excerpt", "excerpt"]

Rows = tuple[tuple[float, ...], ...]

ROWS, COLUMNS = 8, 12
"""At most this many of each, so that both sections fit side by side on a page."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The numbers returned, and those wanted.

    `shape` is that of the whole, `at` the index of the worst entry, `first` the row and column of the first one shown;
    two entries may differ by `allowed`. `hidden` marks those that a mask hides; it is empty if there is no mask.
    """

    got: Rows
    want: Rows
    allowed: float
    shape: tuple[int, ...]
    at: tuple[int, ...]
    first: tuple[int, int]
    hidden: tuple[tuple[bool, ...], ...] = ()


def excerpt(got: Array, want: Array, allowed: float = 0.0, hidden: Array | None = None) -> Excerpt | None:
    """Cut the same window out of both; None if it would show only one number."""
    if got.size < 2 or got.shape != want.shape or not all(a.dtype.kind in "fiub" for a in (got, want)):
        return None
    ours, theirs = np.asarray(got, np.float64), np.asarray(want, np.float64)
    with np.errstate(all="ignore"):
        error = np.abs(ours - theirs)
    worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
    at = tuple(int(i) for i in np.unravel_index(worst, got.shape))
    one, other = (np.atleast_2d(array[at[:-2]]) for array in (ours, theirs))
    row, column = (at if len(at) > 1 else (0, *at))[-2:]
    rows, columns = _window(row, one.shape[0], ROWS), _window(column, one.shape[1], COLUMNS)
    return Excerpt(
        _rows(one[rows, columns]), _rows(other[rows, columns]), float(allowed), got.shape, at,
        (rows.start, columns.start), _hidden(hidden, got.shape, at, rows, columns),
    )  # fmt: skip


def _hidden(
    hidden: Array | None, shape: tuple[int, ...], at: tuple[int, ...], rows: slice, columns: slice
) -> tuple[tuple[bool, ...], ...]:
    if hidden is None:
        return ()
    marks = np.atleast_2d(np.broadcast_to(hidden, shape)[at[:-2]])
    return tuple(tuple(map(bool, row)) for row in marks[rows, columns])


def _window(middle: int, length: int, most: int) -> slice:
    start = max(0, min(middle - most // 2, length - most))
    return slice(start, min(length, start + most))


def _rows(array: Array) -> Rows:
    return tuple(tuple(float(value) for value in row) for row in array)
