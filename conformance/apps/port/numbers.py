"""What arrays have in common where no known mistake explains them: copies, permutations, factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from conformkit.conformance.apps.port.mistake import Right
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.conformance.binding.rules import folded
from conformkit.spec.arrays import Array

__all__ = ["alike", "constant", "resembling", "unrelated"]

_CLOSE = 2e-6
_SHOWN = 4
_ROWS = 4
"""Rows that a table needs for a shift to be told from chance."""
_MOST_HEADS = 16
_ROUNDED = 2e-2
_ENOUGH_NUMBERS, _UNRELATED = 64, 0.4
"""Numbers, and the correlation below which so many have nothing to do with the right ones."""
_FEW_BITS, _MOSTLY = 2**-3, 0.9
"""What two bits behind the first one leave out, and the share of numbers that are at least so near; some vanish."""
_FUSED = (("attention.", ("q", "k", "v")), ("feed_forward.", ("gate", "up")))
"""Parts that files have as one array, and that are split out of it."""
_FUNCTIONS: Mapping[str, Callable[[Array], Array]] = {
    "the exponential": np.exp, "the logarithm": np.log, "the square": np.square, "the square root": np.sqrt,
    "the reciprocal": np.reciprocal, "the absolute value": np.abs, "the hyperbolic tangent": np.tanh,
    "the sigmoid": lambda x: np.reciprocal(1.0 + np.exp(-x)), "the softplus": lambda x: np.log1p(np.exp(x)),
}  # fmt: skip
"""What may be stored in place of a number."""
_WHOLE = 0.02
"""How far a multiple of a step may be from a whole one, after rounding to float32."""


def alike(got: Array, want: Array) -> bool:
    """Whether two arrays hold the same numbers, up to float32's rounding; NaN in `want` is any number."""
    if got.shape != want.shape:
        return False
    anything = np.isnan(want)
    if anything.all():
        return False
    scale = float(np.abs(np.where(anything, 0.0, want)).max(initial=0.0))
    return bool((anything | (np.abs(got - want) <= _CLOSE * max(scale, 1e-30))).all())


def constant(array: Array) -> bool:
    """Whether an array holds one number alone."""
    return bool(array.max() == array.min())


def unrelated(got: Array, want: Array) -> bool:
    """Whether so many numbers have nothing to do with the right ones."""
    one, other = got.ravel(), want.ravel()
    if one.size < _ENOUGH_NUMBERS or constant(one) or constant(other):
        return False
    return abs(float(np.corrcoef(one, other)[0, 1])) < _UNRELATED


def resembling(right: Right, got: Callable[[str], Array], names: Sequence[str]) -> Iterator[NamedMistake]:
    """Yield a sentence for each kind of difference, with the parameters that show it."""
    said: dict[str, list[str]] = dict(_mixed(right, got, names))
    rest = [name for name in names if all(name not in where for where in said.values())]
    for name in rest:
        said.setdefault(_said(name, got(name), right), []).append(name)
    for sentence, where in said.items():
        shown = ", ".join(where[:_SHOWN]) + (", …" if len(where) > _SHOWN else "")
        yield NamedMistake("numbers", f"{shown}: {sentence}", "unsure", tuple(where))


def _mixed(right: Right, got: Callable[[str], Array], names: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of fused projections that have rows of each other, all of them right."""
    for place, parts in _FUSED:
        found: list[str] = []
        for name in names:
            prefix, _, end = name.rpartition(place)
            one, _, kind = end.partition(".")
            fused = [n for part in parts if (n := f"{prefix}{place}{part}.{kind}") in right.parameters]
            if not prefix or one not in parts or len(fused) < len(parts):
                continue
            mine, wanted = ([read(n) for n in fused] for read in (got, right.ours))
            together = _sorted_rows(np.concatenate(mine)) == _sorted_rows(np.concatenate(wanted))
            if together and any(_sorted_rows(a) != _sorted_rows(b) for a, b in zip(mine, wanted, strict=True)):
                found.append(name)
        if found:
            words = f"{', '.join(parts[:-1])} and {parts[-1]}"
            yield f"rows of {words} stand in each other's places: split out of a fused one by another layout", found


def _said(name: str, got: Array, right: Right) -> str:
    """Return how one array differs from the right one."""
    want = right.ours(name)
    if not np.isfinite(got).all():
        return "not all numbers are finite"
    if constant(got):
        return f"every number is {float(got.flat[0]) + 0.0:g}, as before training"
    return (
        _copied(name, got, right)
        or _experts(name, got, right)
        or _moved(name, got, want, right)
        or _function(got, want)
    )


def _experts(name: str, got: Array, right: Right) -> str:
    """Return which right expert each one is, if all are right ones."""
    if not right.parameters[name].axes.startswith("e "):
        return ""
    want = right.ours(name)
    order = [next((n for n, one in enumerate(want) if alike(mine, one)), -1) for mine in got]
    if -1 in order:
        return ""
    if len(set(order)) == 1:
        return f"every expert has the numbers of expert {order[0]}"
    return f"the right experts in the order {_listed(order)}"


def _listed(order: Sequence[int]) -> str:
    """Return the first numbers of an order."""
    return ", ".join(map(str, order[:_MOST_HEADS])) + ", …" * (len(order) > _MOST_HEADS)


def _moved(name: str, got: Array, want: Array, right: Right) -> str:
    """Return how the right numbers stand in other places, if they do."""
    if got.ndim == 2 and got.shape[0] == got.shape[1] and alike(got, want.T):
        return "it is transposed"
    if heads := _heads(name, got, right):
        return heads
    if np.array_equal(np.sort(got, axis=None), np.sort(want.astype(got.dtype), axis=None)):
        return _shifted(got, want) or _order(got, want)
    return _shifted(got, want)


def _shifted(got: Array, want: Array) -> str:
    """Return by how many rows a table was moved, whatever stands in those that are new."""
    if got.ndim != 2 or len(got) < _ROWS or got.shape != want.shape:
        return ""
    for last, first, place in ((got[-1], want, "in front"), (got[0], want, "")):
        near = np.flatnonzero((np.abs(first - last) <= _CLOSE * max(float(np.abs(want).max()), 1e-30)).all(axis=1))
        if len(near) != 1:
            continue
        by = len(got) - 1 - int(near[0]) if place else int(near[0])
        pair = (got[by:], want[: len(want) - by]) if place else (got[: len(got) - by], want[by:])
        if 0 < by < len(got) and alike(got, np.roll(want, by if place else -by, axis=0)):
            return f"the right rows rolled around: row 0 stands at {by if place else len(got) - by}"
        if 0 < by <= len(got) // 2 and alike(*pair):
            other, rows = ("added", "later") if place else ("missing", "earlier")
            return f"the right rows {by} {rows}: {by} {'row is' if by == 1 else 'rows are'} {other} in front"
    return ""


def _heads(name: str, got: Array, right: Right) -> str:
    """Return in which order the heads of a projection stand, if each is whole."""
    _, _, part = name.rpartition("attention.")
    heads = {"q": "num_heads", "k": "kv_heads", "v": "kv_heads", "out": "num_heads"}.get(part.partition(".")[0])
    if heads is None or part == "out.bias":
        return ""
    one, other = (a.T if part == "out.weight" else a for a in (got, right.ours(name)))
    mine, wanted = (a.reshape(right.own[heads], -1) for a in (one, other))
    order = [next((n for n, head in enumerate(wanted) if alike(row, head)), -1) for row in mine]
    if -1 in order or order == list(range(len(order))):
        return ""
    if len(set(order)) == 1:
        return f"every head has the numbers of head {order[0]}"
    return f"the right heads in the order {_listed(order)}"


def _copied(name: str, got: Array, right: Right) -> str:
    """Return whose numbers these are, if those of another parameter."""
    for other in right.parameters:
        near = folded(other) == folded(name) or other.rpartition(".")[0] == name.rpartition(".")[0]
        same = other.split(".")[:2] == name.split(".")[:2]
        shape = right.parameters[other].shape
        inside = same and folded(other) != other
        source = f"{other.split('.', 2)[2]} of the same block" if inside else other
        if other == name or not (near or same or got.ndim == 1):
            continue
        if shape[1:] == got.shape[1:] and len(got) < shape[0] and alike(got, right.ours(other)[: len(got)]):
            return f"the first {len(got)} {'rows' if got.ndim > 1 else 'numbers'} of {source}"
        if got.shape not in (shape, shape[::-1]):
            continue
        straight = shape == got.shape and alike(got, right.ours(other))
        if straight or (got.ndim == 2 and alike(got, right.ours(other).T)):
            return f"the numbers of {source}{'' if straight else ', transposed'}"
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
    """Return the factor, the sum or the function that relates two arrays; else how many rows differ."""
    flat, other = got.astype(np.float64).ravel(), want.astype(np.float64).ravel()
    if formula := _formula(flat, other):
        return formula
    error = float(np.abs(flat - other).max()) / max(float(np.abs(other).max()), 1e-30)
    if bits := _quantized(got, want):
        return f"rounded to {bits} bits, with a scale for each {'tensor' if _on_a_grid(flat, bits) else 'row'}"
    if error < _ROUNDED or _nearly(flat, other):
        return f"rounded: off by less than {10.0 ** math.ceil(math.log10(error)):.0e} of the largest number"
    if some := _some_rows(got, want):
        return some
    if unrelated(flat, other):
        mean = f"{flat.mean():.2g} ± " if abs(flat.mean()) > flat.std() else ""
        return f"numbers without any relation to the right ones, {mean}{flat.std():.2g}: left as they were drawn?"
    return "other numbers: not those of any right parameter"


def _formula(flat: Array, other: Array) -> str:
    """Return what was done to each number alike: a factor and a sum, or a function."""
    spread = other - other.mean()
    if (power := float(spread @ spread)) > 0:
        factor = float(spread @ (flat - flat.mean())) / power
        offset = float(flat.mean() - factor * other.mean())
        if np.abs(flat - factor * other - offset).max() <= 1e-5 * max(np.abs(flat).max(), 1e-30):
            times = f"{factor:.6g} times the right numbers" if abs(factor - 1) > 1e-5 else "the right numbers"
            plus = f" {'plus' if offset > 0 else 'minus'} {abs(offset):.6g}" if abs(offset) > 1e-6 else ""
            return times + plus
    with np.errstate(all="ignore"):
        made = next((words for words, function in _FUNCTIONS.items() if alike(flat, function(other))), "")
    return f"{made} of the right numbers" if made else ""


def _some_rows(got: Array, want: Array) -> str:
    """Return which rows differ where others do not, and whether they hold one number alone."""
    rows = np.flatnonzero((np.abs(got - want) > 1e-6).reshape(len(got), -1).any(axis=1))
    if len(rows) == len(got):
        return ""
    one, place = float(got[rows].flat[0]), f"from row {rows[0]} to row {rows[-1]}"
    if got.ndim > 1 and got[rows].max() == one == got[rows].min():
        return f"{len(rows)} of {len(got)} rows hold {one + 0.0:g} alone, {place}: not filled?"
    return f"{len(rows)} of {len(got)} rows differ, {place}"


def _nearly(got: Array, want: Array) -> bool:
    """Whether nearly every number is the right one but for its last bits, as after a format with few of them."""
    share = np.abs(got - want) <= _FEW_BITS * np.abs(want)
    return got.size >= _ENOUGH_NUMBERS and bool(share.mean() > _MOSTLY)


def _quantized(got: Array, want: Array) -> int:
    """Return in how many bits the right numbers were stored, 4 or 8; 0 if they were not."""
    off = float(np.abs(got - want).max(initial=0.0)) / max(float(np.abs(want).max(initial=0.0)), 1e-30)
    for bits in (4, 8):
        levels = 2 ** (bits - 1)
        rows = got if got.ndim == 2 else got[None]
        if off < 1 / levels and got.size > 2 * levels and (
            _on_a_grid(got.ravel(), bits) or (got.ndim == 2 and all(_on_a_grid(row, bits) for row in rows))
        ):  # fmt: skip
            return bits
    return 0


def _on_a_grid(numbers: Array, bits: int) -> bool:
    """Whether numbers are whole multiples of one step, at most as many as so many bits can count."""
    values = np.unique(np.abs(numbers.astype(np.float64)))
    gaps = np.diff(np.concatenate([[0.0], values]))
    gaps = gaps[gaps > _CLOSE * max(float(values[-1]), 1e-30)]
    if not gaps.size or len(values) < 3:
        return False
    levels, most = 2 ** (bits - 1), float(values[-1])
    for step in (float(gaps.min()), most / (levels - 1), most / levels):
        multiples = values / step
        if most / step <= levels + 0.5 and np.abs(multiples - np.round(multiples)).max() < _WHOLE:
            return True
    return False
