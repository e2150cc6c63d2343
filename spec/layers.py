"""The arithmetic that components share: linear maps, norms, activations; each by its textbook formula."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.variants import Variant

__all__ = ["Weights", "activate", "linear", "normalize", "sigmoid", "under"]

Weights = Mapping[str, Array]
"""Parameters by canonical name. Matrices are (out, in): y = x Wᵀ + b."""

_erf = np.frompyfunc(math.erf, 1, 1)


def under(weights: Weights, prefix: str) -> dict[str, Array]:
    """Return the parameters below a prefix, named relative to it."""
    head = prefix + "."
    return {name.removeprefix(head): value for name, value in weights.items() if name.startswith(head)}


def linear(weights: Weights, name: str, x: Array) -> Array:
    """Return x Wᵀ, plus the bias if there is one."""
    y = x @ weights[f"{name}.weight"].T
    return np.asanyarray(y + weights[f"{name}.bias"] if f"{name}.bias" in weights else y)


def normalize(weights: Weights, name: str, x: Array, variant: Variant) -> Array:
    """Normalize each feature vector (the last axis), then scale by γ and shift by β if there is one."""
    if variant.norm == "rmsnorm":
        unit = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + variant.norm_eps)
        return np.asanyarray(unit * _factor(weights, name, variant))
    centered = x - x.mean(axis=-1, keepdims=True)
    if variant.norm_deviation == "sample":
        deviation = np.sqrt((centered**2).sum(axis=-1, keepdims=True) / (x.shape[-1] - 1)) + variant.norm_eps
    elif variant.norm_deviation == "population":
        deviation = np.sqrt((centered**2).mean(axis=-1, keepdims=True)) + variant.norm_eps
    else:
        deviation = np.sqrt((centered**2).mean(axis=-1, keepdims=True) + variant.norm_eps)
    scaled = centered / deviation * _factor(weights, name, variant)
    return np.asanyarray(scaled + weights[f"{name}.bias"] if f"{name}.bias" in weights else scaled)


def _factor(weights: Weights, name: str, variant: Variant) -> Array:
    """Return what a normalized row is multiplied by: γ, 1 + γ, or 1."""
    if variant.norm_weight == "none":
        return np.ones(())
    gamma = np.asanyarray(weights[f"{name}.weight"])
    return 1.0 + gamma if variant.norm_weight == "offset" else gamma


def activate(x: Array, variant: Variant) -> Array:
    """Apply the variant's activation, elementwise."""
    match variant.activation:
        case "relu":
            return np.maximum(x, 0.0)
        case "relu2":
            return np.maximum(x, 0.0) ** 2
        case "silu":
            return x * sigmoid(x)
        case "quick_gelu":
            return x * sigmoid(1.702 * x)
        case "gelu_tanh":
            return np.asanyarray(0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))))
        case "gelu":
            return np.asanyarray(0.5 * x * (1.0 + np.asanyarray(_erf(x / math.sqrt(2.0)), np.float64)))


def sigmoid(x: Array) -> Array:
    """Return 1/(1 + e^-x) without overflow: only negative numbers are exponentiated."""
    small = np.exp(-np.abs(x))
    return np.asanyarray(np.where(x >= 0, 1.0, small) / (1.0 + small))
