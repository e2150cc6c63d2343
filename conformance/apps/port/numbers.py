"""What arrays have in common where no known mistake explains them: copies, permutations, factors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from conformkit.conformance.apps.port.mistake import Right
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.conformance.binding.rules import folded
from conformkit.spec.arrays import Array

__all__ = ["alike", "resembling"]

_CLOSE = 2e-6
_SHOWN = 4


def alike(got: Array, want: Array) -> bool:
    """Whether two arrays hold the same numbers, up to float32's rounding; NaN in `want` is any number."""
    if got.shape != want.shape:
        return False
    anything = np.isnan(want)
    if anything.all():
        return False
    scale = float(np.abs(np.where(anything, 0.0, want)).max(initial=0.0))
    return bool((anything | (np.abs(got - want) <= _CLOSE * max(scale, 1e-30))).all())


def resembling(right: Right, got: Callable[[str], Array], names: Sequence[str]) -> Iterator[NamedMistake]:
    """Yield a sentence for each kind of difference, with the parameters that show it."""
    said: dict[str, list[str]] = {}
    for name in names:
        said.setdefault(_said(name, got(name), right), []).append(name)
    for sentence, where in said.items():
        shown = ", ".join(where[:_SHOWN]) + (", …" if len(where) > _SHOWN else "")
        yield NamedMistake("numbers", f"{shown}: {sentence}", "unsure", tuple(where))


def _said(name: str, got: Array, right: Right) -> str:
    """Return how one array differs from the right one."""
    want = right.ours(name)
    if not np.isfinite(got).all():
        return "not all numbers are finite"
    if (one := float(got.flat[0])) == got.max() == got.min():
        return f"every number is {one + 0.0:g}, as before training"
    if copied := _copied(name, got, right):
        return f"the numbers of {copied}"
    if got.ndim == 2 and got.shape[0] == got.shape[1] and alike(got, want.T):
        return "it is transposed"
    if np.array_equal(np.sort(got, axis=None), np.sort(want.astype(got.dtype), axis=None)):
        return _order(got, want)
    return _function(got, want)


def _copied(name: str, got: Array, right: Right) -> str:
    """Return the other parameter whose numbers these are."""
    for other in right.parameters:
        near = folded(other) == folded(name) or other.rpartition(".")[0] == name.rpartition(".")[0]
        same = other.split(".")[:2] == name.split(".")[:2]
        if (
            other != name
            and (near or same)
            and right.parameters[other].shape == got.shape
            and alike(got, right.ours(other))
        ):
            return other
    return ""


def _order(got: Array, want: Array) -> str:
    """Return in which way the right numbers stand in another order."""
    if got.ndim == 1:
        return "the right numbers in another order"
    if _sorted_rows(got) == _sorted_rows(want):
        moved = np.flatnonzero((got != want).any(axis=1))
        return f"the right rows in another order, from row {moved[0]} to row {moved[-1]}"
    if _sorted_rows(got.T) == _sorted_rows(want.T):
        moved = np.flatnonzero((got != want).any(axis=0))
        return f"the right columns in another order, from column {moved[0]} to column {moved[-1]}"
    return "the right numbers in another order, neither whole rows nor whole columns: reshaped?"


def _sorted_rows(array: Array) -> list[bytes]:
    rows = np.ascontiguousarray(array, np.float32)
    return sorted(row.tobytes() for row in rows)


def _function(got: Array, want: Array) -> str:
    """Return the factor or the sum that relates two arrays; else how many rows differ."""
    flat, other = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    spread = other - other.mean()
    if (power := float(spread @ spread)) > 0:
        factor = float(spread @ (flat - flat.mean())) / power
        offset = float(flat.mean() - factor * other.mean())
        if np.abs(flat - factor * other - offset).max() <= 1e-5 * max(np.abs(flat).max(), 1e-30):
            times = f"{factor:.6g} times the right numbers" if abs(factor - 1) > 1e-5 else "the right numbers"
            plus = f" {'plus' if offset > 0 else 'minus'} {abs(offset):.6g}" if abs(offset) > 1e-6 else ""
            return times + plus
    error = float(np.abs(flat - other).max()) / max(float(np.abs(other).max()), 1e-30)
    if error < 2e-2:
        return f"rounded: off by {error:.1e} of the largest number"
    rows = np.flatnonzero((np.abs(got - want) > 1e-6).reshape(len(got), -1).any(axis=1))
    if len(rows) < len(got):
        return f"{len(rows)} of {len(got)} rows differ, from row {rows[0]} to row {rows[-1]}"
    return "other numbers: not those of any right parameter"
