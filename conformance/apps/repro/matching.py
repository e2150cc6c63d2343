"""Where the numbers of a check come from: which outputs, and which part of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["Origin", "find", "find_entry"]


@dataclass(frozen=True, slots=True)
class Origin:
    """An expression, with `{}` for the output of name `output` of the call number `call`."""

    call: int
    output: str
    expression: str


Output = tuple[int, str, Array]
"""Number of a call, name of its output, its value."""


def find(wanted: Array, outputs: Sequence[Output]) -> Origin | None:
    """Return where the whole array comes from: an output, a part of one, or a simple reduction of one."""
    for call, name, output in reversed(outputs):
        for text, array in _derived(output):
            part = _part(wanted, array)
            if part is not None:
                return Origin(call, name, text + part)
    return None


def find_entry(number: Any, outputs: Sequence[Output]) -> Origin | None:
    """Return where a single number comes from, unless it is a very common one."""
    if not np.issubdtype(type(number), np.floating) or not np.isfinite(number) or float(number) in {0.0, 1.0, -1.0}:
        return None
    for call, name, output in reversed(outputs):
        for text, array in _derived(output):
            at = np.argwhere(array == number) if array.dtype.kind == "f" else np.empty((0, 0))
            if len(at) == 1:
                return Origin(call, name, text + _subscript([str(int(i)) for i in at[0]]))
    return None


def _derived(output: Array) -> Iterator[tuple[str, Array]]:
    yield "{}", output
    if output.ndim > 1:
        yield "{}.swapaxes(0, 1)", output.swapaxes(0, 1)
    if output.dtype.kind == "f" and output.ndim and output.size:
        yield "{}.sum(axis=-1)", output.sum(axis=-1)
        yield "np.abs({}).max(axis=-1)", np.abs(output).max(axis=-1)
        yield "{}.mean(axis=-1)", output.mean(axis=-1)
        yield "{}.std(axis=-1)", output.std(axis=-1)


def _part(wanted: Array, array: Array) -> str | None:
    """Return the subscript that gives `wanted`, nothing for the whole array, None if there is none."""
    if wanted.shape == array.shape and np.array_equal(wanted, array, equal_nan=wanted.dtype.kind == "f"):
        return ""
    if not wanted.size or wanted.size > array.size or wanted.dtype.kind != array.dtype.kind:
        return None
    return {"i": _columns, "f": _axes}.get(wanted.dtype.kind, _nothing)(wanted, array)


def _nothing(_wanted: Array, _array: Array) -> None:
    return None


def _axes(wanted: Array, array: Array) -> str | None:
    """Return the subscript that chooses from the axes of `array`, found by its numbers, which are all different."""
    places = _places(wanted, array)
    chosen = None if places is None else _product(np.stack(np.unravel_index(places, array.shape)), array.shape)
    if chosen is None or not np.array_equal(array[_index(chosen)], wanted):
        return None
    return _subscript([_axis(c, extent) for c, extent in zip(chosen, array.shape, strict=True)])


def _columns(wanted: Array, array: Array) -> str | None:
    """Return which adjacent columns of ids these are: the last ones that fit, since text grows to the right."""
    if wanted.ndim != 2 or array.ndim != 2 or len(wanted) != len(array):
        return None
    for first in range(array.shape[1] - wanted.shape[1], -1, -1):
        if np.array_equal(array[:, first : first + wanted.shape[1]], wanted):
            return _subscript([":", _axis(np.arange(first, first + wanted.shape[1]), array.shape[1])])
    return None


def _places(wanted: Array, array: Array) -> Array | None:
    """Return the index of each number in `array`; None if one is missing or occurs several times."""
    flat = array.ravel()
    order = np.argsort(flat, kind="stable")
    ranked = flat[order]
    low, high = np.searchsorted(ranked, wanted, "left"), np.searchsorted(ranked, wanted, "right")
    return order[low] if np.all(high - low == 1) else None


def _product(indices: Array, shape: tuple[int, ...]) -> list[Array | int] | None:
    """Return the selection along each axis, if indices (axes, …) select from axes one by one, in order."""
    chosen: list[Array | int] = []
    axis = 0
    for own in indices:
        if axis < own.ndim and (own.shape[axis] > 1 or len(shape) - len(chosen) <= own.ndim - axis):
            line = np.moveaxis(own, axis, 0).reshape(own.shape[axis], -1)
            if (line == line[:, :1]).all() and (len(line) == 1 or len(set(line[:, 0])) > 1):
                chosen.append(line[:, 0])
                axis += 1
                continue
        if (own != own.flat[0]).any():
            return None
        chosen.append(int(own.flat[0]))
    return chosen if axis == indices.ndim - 1 else None


def _index(chosen: Sequence[Array | int]) -> tuple[Any, ...]:
    """Return the index as the subscript is interpreted."""
    return tuple(c if isinstance(c, int) or not _is_range(c) else slice(int(c[0]), int(c[-1]) + 1) for c in chosen)


def _is_range(chosen: Array) -> bool:
    return bool((np.diff(chosen) == 1).all())


def _axis(chosen: Array | int, extent: int) -> str:
    if isinstance(chosen, int):
        return str(chosen)
    if not _is_range(chosen):
        return str(chosen.tolist())
    first, end = int(chosen[0]), int(chosen[-1]) + 1
    return f"{first or ''}:{'' if end == extent else end}"


def _subscript(parts: Sequence[str]) -> str:
    kept = list(parts)
    while kept and kept[-1] == ":":
        kept.pop()
    return f"[{', '.join(kept)}]" if kept else ""
