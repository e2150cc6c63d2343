"""A smaller call that shows the same failure: a wrong output, with readable numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.apps.repro.recording import Record
from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.sizes import LimitWithoutValue, NoSizeError
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = ["Definite", "against_definition", "smaller"]


_SIZES = (
    {"d_model": 2, "num_heads": 1}, {"d_model": 2, "num_heads": 2}, {"d_model": 4, "num_heads": 2},
    {"d_model": 4, "num_heads": 1}, {"d_model": 6, "num_heads": 3}, {"d_model": 6, "num_heads": 2},
    {"d_model": 8, "num_heads": 2},
)  # fmt: skip
_OTHERS = {"d_ff": 3, "vocab_size": 5, "num_layers": 1, "d_k": 2, "d_v": 3}
_SHAPES = ((1, 1), (1, 2), (1, 3), (2, 2), (1, 4), (2, 3), (1, 6), (2, 5))
_FRACTION = 0.03
"""The error of a smaller call must be at least this share of the first one's."""


@dataclass(frozen=True, slots=True)
class Definite:
    """A call, and the definition's result for it."""

    instance: Instance
    inputs: tuple[Array | None, ...]
    got: Array
    want: Array

    @property
    def error(self) -> float:
        """The worst error, relative to the largest number wanted."""
        if self.got.shape != self.want.shape:
            return 0.0
        error = float(np.abs(self.got.astype(np.float64) - self.want).max(initial=0.0))
        return error / max(float(np.abs(self.want).max(initial=0.0)), 1e-30)


def against_definition(instance: Instance, record: Record) -> Definite | None:
    """Return the definition's result for a recorded call; None if it does not cover such a call."""
    inputs = _inputs(instance, record)
    if inputs is None or record.operation != "call":
        return None
    header = record.header
    if header.get("method") or header.get("function") or header.get("mode") == "train" or '"strided"' in str(header):
        return None
    try:
        instance.read()
        want = instance.expected(*inputs)
    except (ClauseFailure, ImplementationFailure, ValueError, KeyError, IndexError):
        return None
    return Definite(instance, inputs, instance.subject.bound.from_theirs(record.results["out"]), want)


def smaller(found: Definite, tolerance: float) -> Definite:
    """Return a smaller call with a similar error, or the same call with rounded numbers, or the same call."""
    enough = max(tolerance, _FRACTION * found.error)
    size = _numbers(found.instance, found.inputs)
    candidates = sorted(_settings(found), key=lambda setting: setting[0])
    for numbers, sizes, inputs in candidates:
        if numbers >= size:
            break
        tried = _tried(found.instance.subject, sizes, inputs)
        if tried is not None and tried.error > enough:
            return tried
    rounded = _tried(
        found.instance.subject, found.instance.sizes, tuple(_rounded(a, 2) for a in found.inputs),
        {name: _rounded(a, 2) for name, a in found.instance.weights.items()}, found.instance.dtype,
    )  # fmt: skip
    return rounded if rounded is not None and rounded.error > enough else found


def _settings(found: Definite) -> Iterator[tuple[int, dict[str, Any], tuple[Array | None, ...]]]:
    """Yield sizes and inputs, with their count of numbers."""
    subject, kept = found.instance.subject, {"causal", "dropout"} & found.instance.sizes.keys()
    for wanted in _SIZES if "d_model" in found.instance.sizes else ({},):
        for batch, tokens in _SHAPES:
            lengths = {"max_len": max(tokens, 2), "block_size": max(tokens, 2)}
            named = {**_OTHERS, **wanted, **lengths}
            asked = {n: v for n, v in named.items() if n in found.instance.sizes}
            try:
                sizes = subject.sizes(**asked, **{name: found.instance.sizes[name] for name in kept})
            except (NoSizeError, LimitWithoutValue):
                continue
            inputs = _drawn(found, sizes, batch, subject.tokens(tokens))
            parameters = subject.bound.component.parameters(sizes, subject.variant)
            count = sum(int(np.prod(p.shape)) for p in parameters.values())
            yield count + sum(a.size for a in inputs if a is not None), sizes, inputs


def _drawn(found: Definite, sizes: Mapping[str, Any], batch: int, tokens: int) -> tuple[Array | None, ...]:
    draw = Draw(0, "a smaller call")
    first = found.inputs[0]
    assert first is not None
    if first.dtype.kind == "i":
        return (draw.ids(sizes["vocab_size"], batch, tokens),)
    if len(found.inputs) == 1:
        return (_rounded(draw.values(batch, tokens, sizes["d_model"]), 1),)
    leading = found.instance.subject.bound.leading(batch)
    q, k, v = draw.qkv(leading, queries=tokens, keys=tokens + 1, dk=2, dv=2)
    mask = found.inputs[3] if len(found.inputs) > 3 else None
    if mask is not None:
        allowed = draw.mask(tokens, tokens + 1)
        mask = allowed if mask.dtype == np.bool_ else np.where(allowed, 0.0, -np.inf)
    return _rounded(q, 1), _rounded(k, 1), _rounded(v, 1), mask


def _tried(
    subject: Subject, sizes: Mapping[str, Any], inputs: tuple[Array | None, ...],
    weights: Mapping[str, Array] | None = None, dtype: str | None = None,
) -> Definite | None:  # fmt: skip
    draw = Draw(0, "smaller weights")
    try:
        instance = subject.construct(sizes, dtype=dtype)
        if weights is None:
            weights = {name: np.round(a, 1) for name, a in draw.weights(instance.canonical).items()}
        if weights:
            instance.write(weights)
        return Definite(instance, inputs, instance.call(*inputs).out, instance.expected(*inputs))
    except (ClauseFailure, ImplementationFailure, ValueError, IndexError):
        return None


def _rounded(array: Array | None, digits: int) -> Any:
    if array is None or array.dtype.kind != "f":
        return array
    return np.round(array.astype(np.float64), digits) + 0.0  # no minus zero


def _numbers(instance: Instance, inputs: tuple[Array | None, ...]) -> int:
    return sum(a.size for a in instance.weights.values()) + sum(a.size for a in inputs if a is not None)


def _inputs(instance: Instance, record: Record) -> tuple[Array | None, ...] | None:
    """Return the contract's inputs of a recorded call; None if they are unknown."""
    bound = instance.subject.bound
    names = bound.component.inputs
    if names[0] not in record.arrays:
        return None
    inputs = [bound.from_theirs(record.arrays[name]) for name in names if name in record.arrays and name != "mask"]
    if names[0] in {"x", "ids"}:
        return tuple(inputs) if inputs[0].ndim == (3 if names[0] == "x" else 2) else None
    mask = record.arrays.get("mask")
    if mask is None:
        return tuple(inputs) if len(inputs) == 3 else None
    if bound.mask.shape.endswith(" 1"):
        return None
    return (*inputs, bound.mask.form.visible(mask) if mask.dtype == np.bool_ else mask)
