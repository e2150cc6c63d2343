"""How a wrong result is related to the wanted one, in general: a factor, an order of an axis, an input added.

A relation counts only where it gives all numbers that are wrong, as accurately as the check asks, and where there are
many more of those than it has numbers of its own.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.agreement import FINEST, agree, closeness, in_numbers
from conformkit.conformance.assertions.moves import move
from conformkit.conformance.assertions.places import Region, axis_words, region
from conformkit.conformance.findings.relation import How, Relation
from conformkit.spec.arrays import Array

__all__ = ["relation"]

Sizes = Mapping[str, int]
_MOMENTS = {
    "1/√(1 - 0.999)": 1 / math.sqrt(1 - 0.999), "√(1 - 0.999)": math.sqrt(1 - 0.999),
    "(1 - 0.9)/√(1 - 0.999)": (1 - 0.9) / math.sqrt(1 - 0.999),
}  # fmt: skip
"""What the first step of Adam is too long or too short by, if its averages are not corrected."""
_ENOUGH = 4
"""So many numbers for each one that a relation has of its own."""
_LARGEST = 60_000
"""Larger arrays are not looked at."""
_USUAL = (
    "√d_k", "√d_head", "√head_width", "√d_model", "d_k", "d_head", "head_width", "d_model", "num_heads", "kv_heads",
    "num_layers", "tokens", "batch", "keys", "vocab_size",
)  # fmt: skip
"""What scores, embeddings and means are multiplied or divided by, the most usual first."""
_SMALL = 4
"""Numbers up to this one are sizes of many things."""
_SIMPLE = 64
"""One number alone is said to be a multiple or a fraction up to this one, or a power of two."""


def relation(
    label: str,
    got: Array,
    want: Array,
    allowed: float = 0.0,
    *,
    inputs: Mapping[str, Array] | None = None,
    sizes: Sizes | None = None,
) -> Relation | None:
    """Return how a result is related to the wanted one, and where; None where nothing is found.

    `inputs` are the arrays that the code was called with, `sizes` what a factor may be made of.
    """
    if not 0 < got.size <= _LARGEST or (both := in_numbers(got, want)) is None:
        return None
    ours, theirs = both
    if got.size == 1:
        return _of_one(float(ours.reshape(())), float(theirs.reshape(())), sizes or {})
    close = closeness(theirs, allowed)
    if agree(ours, theirs, close):
        return None  # so near that every relation would fit
    bad = np.abs(ours - theirs) > allowed
    names = axis_words(label, got.ndim)
    where = region(bad, names)
    seen = {name: _spread(np.asarray(array), ours) for name, array in (inputs or {}).items()}
    seen = {name: array for name, array in seen.items() if array.shape == got.shape}
    found = _in_region(ours, theirs, where, close, seen, names, sizes or {})
    if found is not None or not where.words:
        return found
    return Relation(How.PLACE, where=where.words)


def _spread(array: Array, like: Array) -> Array:
    """Return an input in float64, and a vector of weights as it is added: the same in every row."""
    vector = array.ndim == 1 < like.ndim and array.shape == like.shape[-1:]
    return np.asarray(np.broadcast_to(array, like.shape) if vector else array, np.float64)


def _in_region(
    ours: Array, theirs: Array, where: Region, close: float, inputs: Mapping[str, Array], names: Sequence[str],
    sizes: Sizes,
) -> Relation | None:  # fmt: skip
    got, want = ours[where.index], theirs[where.index]
    seen = {name: array[where.index] for name, array in inputs.items()}
    for found in _candidates(got, want, close, seen, names, sizes):
        return replace(found, where=where.words)
    for found in _functions(ours, theirs, close, names) if where.words else ():
        return found
    moved = move(ours, theirs, close, names)
    if moved is None and where.words and (moved := move(got, want, close, names)) is not None:
        return replace(moved, where=where.words)
    return moved


def _candidates(
    got: Array, want: Array, close: float, inputs: Mapping[str, Array], names: Sequence[str], sizes: Sizes
) -> Iterator[Relation]:  # fmt: skip
    """Yield what fits, the simplest first."""
    if got.size >= _ENOUGH and np.abs(want).max() > close and agree(got, -want, close):
        yield Relation(How.FACTOR, (-1.0,))
    if np.ptp(want) <= close or got.size < _ENOUGH:
        if got.size == _ENOUGH - 1 and np.ptp(want) > close:
            yield from (found for found in _linear(got, want, close, sizes) if found.how is How.FACTOR)
        return
    if np.abs(got).max() <= close:
        yield Relation(How.ZERO)
        return
    yield from _linear(got, want, close, sizes)
    yield from _functions(got, want, close, names)
    yield from _with_inputs(got, want, close, inputs)
    yield from _along_axes(got, want, close, names)


def _linear(got: Array, want: Array, close: float, sizes: Sizes) -> Iterator[Relation]:
    factor = _fit(got, want)
    if agree(got, factor * want, close):
        yield Relation(How.FACTOR, (_neat(factor),), tuple(_known_as(abs(factor), sizes)))
    offset = float((got - want).mean())
    if agree(got, want + offset, close):
        yield Relation(How.OFFSET, (offset,))
    if got.size >= 2 * _ENOUGH:
        slope, shift = _fit(got - got.mean(), want - want.mean()), 0.0
        shift = float(got.mean() - slope * want.mean())
        if abs(slope) > FINEST and agree(got, slope * want + shift, close):
            yield Relation(How.BOTH, (_neat(slope), shift))


def _softmax(x: Array, axis: int) -> Array:
    exponentials = np.exp(x - x.max(axis=axis, keepdims=True))
    shares: Array = exponentials / exponentials.sum(axis=axis, keepdims=True)
    return shares


_POINTWISE: Mapping[str, Callable[[Array], Array]] = {
    "the square of": np.square, "the root of": np.sqrt, "the absolute value of": np.abs, "the exponential of": np.exp,
    "the logarithm of": np.log, "the reciprocal of": np.reciprocal, "the tanh of": np.tanh,
    "the ReLU of": lambda x: np.maximum(x, 0), "the sigmoid of": lambda x: 1 / (1 + np.exp(-x)),
    "a rounding of": np.rint,
}  # fmt: skip
_OVER_AXES: Mapping[str, Callable[[Array, int], Array]] = {
    "the softmax of": _softmax, "the log-softmax of": lambda x, axis: np.log(np.maximum(_softmax(x, axis), 1e-300)),
    "the running sum of": lambda x, axis: np.cumsum(x, axis=axis),
    "the deviation from the mean of": lambda x, axis: x - x.mean(axis=axis, keepdims=True),
    "the share in the sum of": lambda x, axis: x / x.sum(axis=axis, keepdims=True),
    "the vector of length 1 along": lambda x, axis: x / np.sqrt(np.square(x).sum(axis=axis, keepdims=True)),
}  # fmt: skip


def _functions(got: Array, want: Array, close: float, names: Sequence[str]) -> Iterator[Relation]:
    if len(np.unique(want)) < _ENOUGH:
        return  # of 0 and 1, many functions are the same
    with np.errstate(all="ignore"):
        for name, function in _POINTWISE.items():
            for how, made, other in ((How.FUNCTION, function(want), got), (How.LACKS, function(got), want)):
                if agree(made, other, close):
                    yield Relation(how, names=(name,))
        for (name, over), axis in itertools.product(_OVER_AXES.items(), range(got.ndim - 1, -1, -1)):
            if got.shape[axis] < 2:
                continue
            for how, made, other in ((How.FUNCTION, over(want, axis), got), (How.LACKS, over(got, axis), want)):
                if agree(made, other, close):
                    yield Relation(how, names=(name,), axis=names[axis])


def _with_inputs(got: Array, want: Array, close: float, inputs: Mapping[str, Array]) -> Iterator[Relation]:
    for name, seen in inputs.items():
        if not np.isfinite(seen).all() or np.ptp(seen) <= close:
            continue
        if agree(got, seen, close):
            yield Relation(How.INPUT, names=(name,))
        times = _fit(got - want, seen)
        if abs(times) > FINEST and agree(got - want, times * seen, close):
            yield Relation(How.MORE, (_neat(times),), (name,))


def _along_axes(got: Array, want: Array, close: float, names: Sequence[str]) -> Iterator[Relation]:
    """Yield a factor, or an offset, for each index of an axis."""
    for axis in range(got.ndim):
        others = tuple(a for a in range(got.ndim) if a != axis)
        if got.shape[axis] < 2 or got.size < _ENOUGH * got.shape[axis]:
            continue
        power = np.square(want).sum(axis=others, keepdims=True)
        factors = (got * want).sum(axis=others, keepdims=True) / np.maximum(power, 1e-300)
        if agree(got, factors * want, close):
            yield Relation(How.FACTORS, tuple(map(_neat, factors.ravel())), axis=names[axis])
        offsets = (got - want).mean(axis=others, keepdims=True)
        if agree(got, want + offsets, close):
            yield Relation(How.OFFSETS, tuple(map(float, offsets.ravel())), axis=names[axis])


def _of_one(got: float, want: float, sizes: Sizes) -> Relation | None:
    """Return what one number is, where it is a simple multiple or a fraction of the wanted one."""
    if not want or not got or got == want:
        return None
    factor = got / want
    whole = max(abs(factor), 1 / abs(factor))
    simple = math.isclose(whole, round(whole), rel_tol=1e-5)
    simple = simple and (round(whole) <= _SIMPLE or math.log2(round(whole)).is_integer())
    names = tuple(_known_as(abs(factor), sizes))
    if not simple and not names:
        return None
    return Relation(How.TIMES, (_neat(factor),), names)


def _fit(got: Array, want: Array) -> float:
    """Return the number that `want` is best multiplied by."""
    power = float(np.square(want).sum())
    return float((got * want).sum()) / power if power else 0.0


def _neat(value: float) -> float:
    """Return a number without the noise of roundings: 0.49999999 is 0.5."""
    return float(f"{value:.6g}")


def _known_as(factor: float, sizes: Sizes) -> list[str]:
    """Return what a factor is, the most plausible of all that it may be; of a small number only what is usual.

    The root of a small number is that root, whatever has this size: sums are divided by √2 in any batch.
    """
    found = sorted(_readings(factor, sizes), key=_how_usual)[:1]
    if not sizes or not found or _how_usual(found[0]) < len(_USUAL):
        return found
    whole = max(factor, 1 / factor)
    if whole <= _SMALL and math.isclose(whole, round(whole), rel_tol=1e-5):
        return []
    return list(_readings(factor, {})) if whole**2 < _SMALL else found


def _how_usual(reading: str) -> int:
    said = reading.removeprefix("1/")
    return _USUAL.index(said) if said in _USUAL else len(_USUAL)


def _readings(factor: float, sizes: Sizes) -> Iterator[str]:
    """Yield what a factor may be: a size, its root, or one divided by those; without sizes, a root."""
    for name, size in sizes.items():
        for said, value in ((name, size), (f"√{name}", math.sqrt(size))):
            if size > 1 and math.isclose(factor, value, rel_tol=1e-5):
                yield said
            if size > 1 and math.isclose(factor, 1 / value, rel_tol=1e-5):
                yield f"1/{said}"
    for said, value in _MOMENTS.items() if not sizes else ():
        if math.isclose(factor, value, rel_tol=1e-4):
            yield said
    for number in (2, 3, 5, 6, 7, 8):
        for said, value in ((f"√{number}", math.sqrt(number)), (f"1/√{number}", 1 / math.sqrt(number))):
            if not sizes and math.isclose(factor, value, rel_tol=1e-5):
                yield said
