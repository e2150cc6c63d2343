"""What rounding does to a result in half precision, found by an analysis of the definition's own formula.

    fl(a ∘ b) = (a ∘ b)(1 + δ), |δ| ≤ u        u = 2^-8 in bfloat16, 2^-11 in float16

The definition is evaluated in float64 several times, with the result of each operation multiplied by its own 1 + δ,
δ drawn within ±u; for a sum of n terms within ±u √n, as when one is added after the other. Tables of constants are
rounded before they are used. What an operation does to errors before it, such as a difference that cancels, a root near
0 or an exponential of a large score, is thus what it does in the formula.
Parker 1997 calls this Monte Carlo arithmetic; that roundings cancel as drawn ones do: Higham and Mary 2019.

Real roundings are smaller than these by a third on average, and code that computes in float32 inside rounds less often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from conformkit.spec.arrays import Array

__all__ = ["SIGMAS", "UNIT", "allowed_by", "room", "roundings"]

UNIT: Mapping[str, float] = {"bfloat16": 2.0**-8, "float16": 2.0**-11}
"""The largest relative error of one rounding."""
_RUNS = 12
"""How often a definition is evaluated: its standard deviations are then known to a fifth."""
_LARGER, _LARGER_RUNS = 4.0, 24
"""Larger roundings are drawn as well, and oftener: a choice that some of them change, such as that of an expert, may
be made either way."""
SIGMAS = 5.0
"""How many standard deviations one of some thousand results may be off."""
_EXACT = {
    np.negative, np.absolute, np.maximum, np.minimum, np.sign, np.isfinite, np.greater, np.greater_equal, np.less,
    np.less_equal, np.equal, np.not_equal, np.logical_and, np.logical_or, np.logical_not,
}  # fmt: skip
_drawn: ContextVar[tuple[float, np.random.Generator]] = ContextVar("drawn")


class _Rounded(np.ndarray[Any, Any]):
    """An array whose operations are off by a rounding each."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Carry an operation out, and round."""
        if "out" in options:
            options["out"] = tuple(_plain(one) for one in options["out"])
        plain = [_plain(one) if isinstance(one, _Rounded) else _table(one) for one in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        if ufunc in _EXACT or not isinstance(result, np.ndarray | np.floating) or result.dtype.kind != "f":
            return _marked(result)
        return _marked(result * _off(np.shape(result), _terms(ufunc, method, plain, result)))

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """Carry out what moves numbers, such as `where`, and keep the mark."""
        return _marked(super().__array_function__(function, types, arguments, options))


def _table(value: Any) -> Any:
    """Return a table of constants as the format holds it; numbers are exact."""
    if not isinstance(value, np.ndarray) or value.ndim == 0 or value.dtype.kind != "f":
        return value
    return value * _off(value.shape, 1)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _Rounded) else value


def _marked(value: Any) -> Any:
    floating = isinstance(value, np.ndarray | np.floating) and value.dtype.kind == "f"
    return np.asarray(value).view(_Rounded) if floating else value


def _terms(ufunc: Any, method: str, inputs: list[Any], result: Any) -> int:
    """Return how many numbers were added for each result."""
    if ufunc is np.matmul:
        return int(np.shape(inputs[0])[-1])
    return max(1, np.size(inputs[0]) // max(1, np.size(result))) if method == "reduce" else 1


def _off(shape: tuple[int, ...], terms: int) -> Array:
    unit, draws = _drawn.get()
    return 1.0 + draws.uniform(-1.0, 1.0, shape) * unit * math.sqrt(max(1, terms))


@contextmanager
def _drawing(unit: float, seed: int) -> Iterator[None]:
    token = _drawn.set((unit, np.random.default_rng(seed)))
    try:
        yield
    finally:
        _drawn.reset(token)


Definition = Callable[[Mapping[str, Array], Mapping[str, Array]], Array]


def roundings(
    definition: Definition, weights: Mapping[str, Array], inputs: Mapping[str, Array], want: Array, precision: str,
    *, times: float = 1.0, runs: int = _RUNS,
) -> Array:  # fmt: skip
    """Return how far drawn roundings, or ones `times` as large, took the definition's result, (runs, …)."""
    found = []
    for seed in range(runs):
        with _drawing(times * UNIT[precision], seed):
            marked = {name: _marked(array) for name, array in weights.items()}
            result = definition(marked, {name: _marked(array) for name, array in inputs.items()})
        found.append(_plain(result) - want)
    return np.stack(found)


def allowed_by(drawn: Array, want: Array, precision: str) -> Array:
    """Return how far each number may be off: as far as the others of its row, and by its own rounding."""
    spread = np.sqrt((drawn**2).mean(axis=0))
    row = np.sqrt((spread**2).mean(axis=-1, keepdims=True))
    return np.asarray(SIGMAS * np.maximum(spread, row) + UNIT[precision] * np.abs(want))


def room(
    definition: Definition, weights: Mapping[str, Array], inputs: Mapping[str, Array], want: Array, precision: str
) -> Array:  # fmt: skip
    """Return how far roundings may take each number of a definition's result."""
    usual = allowed_by(roundings(definition, weights, inputs, want, precision), want, precision)
    larger = roundings(definition, weights, inputs, want, precision, times=_LARGER, runs=_LARGER_RUNS)
    return np.asarray(usual + np.abs(larger).max(axis=0))
