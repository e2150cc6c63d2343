"""Curves and fits after training: Protocols and definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.protocols import ArrayT, ArrayT_co, Named

__all__ = [
    "AttentionEntropy", "ExponentialMovingAverage", "FitPowerLaw", "RollingMean", "attention_entropy",
    "exponential_moving_average", "exponentially_weighted_mean", "fit_power_law", "rolling_mean",
]  # fmt: skip


@runtime_checkable
class ExponentialMovingAverage(Named, Protocol[ArrayT_co]):
    """Smooth a series: s₀ = x₀, s = α x + (1 - α) s. Source: pandas, `DataFrame.ewm`."""

    def __call__(self, values: list[float], alpha: float) -> Sequence[float] | ArrayT_co: ...


@runtime_checkable
class RollingMean(Named, Protocol[ArrayT_co]):
    """Average each run of `window` values in a row: n - window + 1 means. Source: NumPy, `numpy.convolve`."""

    def __call__(self, values: list[float], window: int) -> Sequence[float] | ArrayT_co: ...


@runtime_checkable
class AttentionEntropy(Named, Protocol[ArrayT]):
    """Return -Σ a ln a over the keys, in nats: (…, Tq, Tk) → (…, Tq). Source: Shannon 1948, §6."""

    def __call__(self, weights: ArrayT) -> ArrayT: ...


@runtime_checkable
class FitPowerLaw(Named, Protocol):
    """Fit L = factor · N^-exponent by least squares of ln L on ln N, and return exponent and factor.

    Source: Kaplan et al. 2020, §1.2.
    """

    def __call__(self, sizes: list[float], losses: list[float]) -> tuple[SupportsFloat, SupportsFloat]: ...


def exponential_moving_average(values: Sequence[float], alpha: float) -> list[float]:
    """Return as many smoothed values as there are values."""
    smoothed: list[float] = []
    for value in values:
        smoothed.append(alpha * value + (1.0 - alpha) * smoothed[-1] if smoothed else value)
    return smoothed


def exponentially_weighted_mean(values: Sequence[float], alpha: float) -> list[float]:
    """Return, for each value, the mean of all values up to it with the weights (1 - α)^age: the start is corrected."""
    weights = [(1.0 - alpha) ** age for age in range(len(values))]
    parts = [(weights[: end + 1], values[end::-1]) for end in range(len(values))]
    return [sum(w * x for w, x in zip(ages, newest, strict=True)) / sum(ages) for ages, newest in parts]


def rolling_mean(values: Sequence[float], window: int) -> Array:
    """Return the means of all runs."""
    return np.convolve(values, np.full(window, 1.0 / window), mode="valid")


def attention_entropy(weights: Array) -> Array:
    """Return the entropy of each row; a weight of 0 adds 0."""
    logarithms = np.log(np.where(weights > 0.0, weights, 1.0))
    return np.asarray(-(weights * logarithms).sum(axis=-1))


def fit_power_law(sizes: Sequence[float], losses: Sequence[float]) -> tuple[float, float]:
    """Return exponent and factor."""
    slope, height = np.polyfit(np.log(sizes), np.log(losses), 1)
    return float(-slope), float(np.exp(height))
