"""A component with chosen weights: its output, and the definition's output with these weights or others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.engine.results import DifferingPart
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["CLEARLY", "PartTrial", "Seen", "distance", "first", "neutral_rows"]

Weights = Mapping[str, Array]

CLEARLY = 0.01
"""An explanation may leave at most this share of the difference."""
_FACTORS = (0.1, 0.3, 0.6, 1.0, 1.7, 3.0)
"""Starting points of the search for a factor; it starts from the best one."""
_STEPS = 5
_STEP = 1e-6


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: weights, inputs, output, and the definition's output."""

    weights: Weights
    inputs: Array
    got: Array
    want: Array

    @property
    def error(self) -> float:
        """The largest difference, relative to the largest number wanted."""
        return distance(self.got, self.want)

    @property
    def largest(self) -> float:
        """The largest difference."""
        return _size(self.got - self.want)


@dataclass(frozen=True)
class PartTrial:
    """An instance, its weights before any change, its usual inputs, and the allowed error."""

    instance: Instance
    base: Weights
    inputs: Array
    tolerance: float

    @property
    def variant(self) -> Variant:
        """The declared choices."""
        return self.instance.subject.variant

    def see(self, *changes: Weights, inputs: Array | None = None) -> Seen:
        """Write the base weights with these changes, and call. Raises DriverError."""
        weights, x = _merged(self.base, *changes), self.inputs if inputs is None else inputs
        got = np.asarray(self.instance.write(weights)(x), np.float64)
        return Seen(weights, x, got, self.definition(weights, x))

    def definition(self, weights: Weights, inputs: Array, **choices: Any) -> Array:
        """Return what the definition gives; with choices, that of another variant."""
        component = self.instance.subject.bound.component
        given = {component.inputs[0]: inputs}
        return component.forward(weights, given, self.instance.sizes, self.variant.but(**choices))

    def agrees(self, seen: Seen) -> bool:
        """Whether the output is the definition's."""
        return seen.error <= self.tolerance

    def off(self, seen: Seen, *changes: Weights, **choices: Any) -> float:
        """Return the distance of the output from the definition with other weights or choices."""
        return distance(seen.got, self.definition(_merged(seen.weights, *changes), seen.inputs, **choices))

    def factor(self, seen: Seen, names: Iterable[str]) -> tuple[float, float]:
        """Return the positive factor of these weights for which the definition is nearest, and that distance."""
        scaled = {name: seen.weights[name] for name in names if name in seen.weights}

        def remainder(factor: float) -> Array:
            weights = _merged(seen.weights, {name: factor * w for name, w in scaled.items()})
            return self.definition(weights, seen.inputs) - seen.got

        factor, left = _best_factor(remainder)
        return factor, left / max(_size(seen.want), 1e-30)

    def names(self, prefix: str) -> list[str]:
        """Return the canonical parameters whose names begin with this prefix."""
        return [name for name in self.base if name.startswith(prefix)]

    def times(self, factor: float, *prefixes: str) -> dict[str, Array]:
        """Return multiples of the canonical parameters whose names begin with these prefixes."""
        return {name: factor * w for name, w in self.base.items() if name.startswith(prefixes)}

    def zeros(self, *prefixes: str) -> dict[str, Array]:
        """Return zeros for the canonical parameters whose names begin with these prefixes."""
        return self.times(0.0, *prefixes)

    def plain(self, *norms: str) -> dict[str, Array]:
        """Return γ = 1 and β = 0 for norms."""
        plain = (("weight", self.variant.plain_gamma), ("bias", 0.0))
        values = {f"{norm}.{kind}": value for norm in norms for kind, value in plain}
        return {name: np.full_like(self.base[name], v) for name, v in values.items() if name in self.base}


_WORDS = {
    "scale": "the scaling of the scores", "scores": "how the scores are computed", "mask": "the mask",
    "q": "the queries", "k": "the keys", "v": "the values", "out": "the output projection",
    "heads": "how features are split into heads and joined again", "feed_forward": "the feed-forward network",
    "norm1": "the norm of attention", "norm2": "the norm of the feed-forward network", "norm": "the last norm",
    "embedding_norm": "the norm after the embedding", "head": "the head, which makes the logits",
    "output": "the order of the rows of logits",
}  # fmt: skip
"""What a part does, where its name alone does not say so."""


def first(path: str, told: str) -> DifferingPart:
    """Return a part with the evidence that it is the first; the words before the colon hold no drawn number."""
    block, _, name = path.rpartition(".")
    words = f"{_WORDS[name]}{f' of {block}' if block else ''} (`{path}`)" if name in _WORDS else path
    return DifferingPart(path, f"start with {words}: {told}")


def neutral_rows(draw: Draw, batch: int, length: int, width: int) -> Array:
    """Return rows (B, T, D) of mean 0 and variance 1; if the width is even, of ±1.

    They come in opposite pairs, so that mean and variance over positions or the batch are 0 and 1 too.
    """
    drawn = np.stack([draw.permutation(width) for _ in range(-(-length // 2))])
    signs = np.where(drawn % 2 == 0, 1.0, -1.0) if width % 2 == 0 else draw.values(*drawn.shape)
    signs = signs - signs.mean(axis=-1, keepdims=True)
    signs = signs / np.maximum(signs.std(axis=-1, keepdims=True), 1e-30)
    rows = np.stack([signs, -signs], axis=1).reshape(-1, width)[:length]  # (T, D)
    return np.stack([rows if number % 2 == 0 else -rows for number in range(batch)])


def distance(got: Array, want: Array) -> float:
    """Return the largest difference, relative to the largest number wanted; infinite if shapes differ."""
    return _size(got - want) / max(_size(want), 1e-30) if got.shape == want.shape else float("inf")


def _merged(weights: Weights, *changes: Weights) -> dict[str, Array]:
    merged = dict(weights)
    for change in changes:
        merged |= change
    return merged


def _best_factor(remainder: Callable[[float], Array]) -> tuple[float, float]:
    """Return the positive factor with the smallest remainder, and that remainder: Gauss-Newton from the best start."""
    least, best = min((_size(remainder(factor)), factor) for factor in _FACTORS)
    factor = best
    for _ in range(_STEPS):
        now = remainder(factor)
        slope = (remainder(factor + _STEP) - now) / _STEP
        steepness = float((slope**2).sum())
        if not np.isfinite(steepness) or steepness == 0.0:
            break
        factor -= float((now * slope).sum()) / steepness
        if factor < _FACTORS[0] / 10:
            break
        least, best = min((least, best), (_size(remainder(factor)), factor))
    return best, least


def _size(numbers: Array) -> float:
    size = float(np.abs(numbers).max(initial=0.0))
    return size if np.isfinite(size) else float("inf")
