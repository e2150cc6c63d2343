"""What to look at after training.

    sᵢ = α xᵢ + (1 - α) sᵢ₋₁, s₀ = x₀        mᵢ = (xᵢ + … + xᵢ₊w₋₁) / w        H = -Σ_j a_j ln a_j
    L(N) = factor · N^(-exponent), fitted as a straight line: ln L = ln factor - exponent · ln N

Kingma & Ba 2015, §3 (smoothing); Kaplan et al. 2020 (scaling fit); the entropy of attention weights a is in nats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from conformkit.reference.errors import ShapeError, SizeError
from conformkit.reference.sizes import check_at_least

__all__ = [
    "attention_entropy", "bias_corrected_average", "exponent_error", "exponential_moving_average", "fit_power_law",
    "rolling_mean",
]  # fmt: skip


def exponential_moving_average(values: Sequence[float], alpha: float) -> list[float]:
    """Smooth a series; a small α smooths more. The first value stays as it is.

    Shapes: n values → n values
    Raises: SizeError for an α that is not above 0 and at most 1.
    """
    if not 0.0 < alpha <= 1.0:
        raise SizeError("alpha", alpha, "above 0 and at most 1")
    smoothed: list[float] = []
    for value in values:
        smoothed.append(alpha * value + (1 - alpha) * smoothed[-1] if smoothed else float(value))
    return smoothed


def bias_corrected_average(values: Sequence[float], alpha: float) -> list[float]:
    """Smooth a series as `exponential_moving_average` does in the long run, without clinging to its first value.

        sᵢ = Σ_j (1 - α)^(i-j) xⱼ / Σ_j (1 - α)^(i-j)        j from 0 to i

    Shapes: n values → n values
    Raises: SizeError for an α that is not above 0 and at most 1.
    Source: Kingma & Ba 2015, §3. With α = 0.01 the plain recursion keeps a third of the first loss
            after 100 steps.
    """
    if not 0.0 < alpha <= 1.0:
        raise SizeError("alpha", alpha, "above 0 and at most 1")
    smoothed: list[float] = []
    total = weight = 0.0
    for value in values:
        total, weight = (1 - alpha) * total + value, (1 - alpha) * weight + 1.0
        smoothed.append(total / weight)
    return smoothed


def rolling_mean(values: Sequence[float], window: int) -> list[float]:
    """Average each run of `window` values in a row; the first mean belongs to the value number window - 1, from 0.

    Shapes: n values → n - window + 1 means, none where there are fewer values than that
    Raises: SizeError for a window below 1.
    """
    check_at_least(1, window=window)
    return [math.fsum(values[start : start + window]) / window for start in range(len(values) - window + 1)]


def attention_entropy(weights: Tensor) -> Tensor:
    """Return how spread out each query's weights are: 0 for one key, ln n for n keys alike.

    Shapes: (…, Tq, Tk) → (…, Tq)
    Units:  nats; a weight of 0 contributes 0.
    """
    entropy: Tensor = torch.special.entr(weights).sum(dim=-1)  # (…, Tq)
    return entropy


def fit_power_law(sizes: Sequence[float], losses: Sequence[float]) -> tuple[float, float]:
    """Fit L = factor · N^(-exponent) by least squares on logarithms, and return exponent and factor.

    Raises: ShapeError for series of different lengths; SizeError for fewer than two sizes, or a number that has no
            logarithm.
    Source: Kaplan et al. 2020, eq. 1.1, found 0.076. Differs: none; a loss that cannot be removed, which
            the formula lacks, bends the line and lowers the exponent.
    """
    x, y = _logarithms(sizes, losses)
    mean_x, mean_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    slope = math.fsum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / _spread(x)
    return -slope, math.exp(mean_y - slope * mean_x)


def exponent_error(sizes: Sequence[float], losses: Sequence[float]) -> float:
    """Return the standard error of the fitted exponent, from how far the points scatter about their line.

    Raises: SizeError for fewer than three points, since two always lie on a line; as `fit_power_law`.
    """
    if len(sizes) < 3:
        raise SizeError("the number of sizes", len(sizes), "at least 3")
    exponent, factor = fit_power_law(sizes, losses)
    x, y = _logarithms(sizes, losses)
    misses = [b - (math.log(factor) - exponent * a) for a, b in zip(x, y, strict=True)]
    variance = math.fsum(miss * miss for miss in misses) / (len(x) - 2)
    return math.sqrt(variance / _spread(x))


def _logarithms(sizes: Sequence[float], losses: Sequence[float]) -> tuple[list[float], list[float]]:
    if len(sizes) != len(losses):
        raise ShapeError("the number of losses", len(losses), f"that of sizes = {len(sizes)}")
    for name, numbers in (("a size", sizes), ("a loss", losses)):
        for number in numbers:
            if not 0 < number < math.inf:
                raise SizeError(name, number, "above 0 and finite")
    if len(set(sizes)) < 2:
        raise SizeError("the number of different sizes", len(set(sizes)), "at least 2")
    return [math.log(size) for size in sizes], [math.log(loss) for loss in losses]


def _spread(x: Sequence[float]) -> float:
    mean = math.fsum(x) / len(x)
    return math.fsum((a - mean) ** 2 for a in x)
