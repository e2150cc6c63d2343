"""Smoothing, entropy and the scaling fit, compared with numbers computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from conformkit.reference import attention_entropy, exponential_moving_average, fit_power_law, rolling_mean
from conformkit.reference.analysis import bias_corrected_average, exponent_error
from conformkit.reference.errors import SizeError


def test_smoothing_starts_at_the_first_value() -> None:
    assert exponential_moving_average([10, 0, 0], 0.01) == pytest.approx([10, 9.9, 9.801])
    assert exponential_moving_average([], 0.5) == []


def test_means_are_over_whole_windows_only() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0]
    assert rolling_mean(values, 2) == pytest.approx([2, 2.5, 2.5, 3])
    assert rolling_mean(values, 6) == []
    assert len(rolling_mean(list(range(250)), 100)) == 151


def test_entropy_of_one_key_and_of_all_alike() -> None:
    weights = torch.tensor([[1.0, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0]])
    assert attention_entropy(weights).tolist() == pytest.approx([0, math.log(4), math.log(2)])


def test_the_exponent_of_an_exact_power_law_has_no_error() -> None:
    sizes = [1e6, 1e7, 1e8]
    losses = [5 * size**-0.076 for size in sizes]
    exponent, factor = fit_power_law(sizes, losses)
    assert (exponent, factor) == pytest.approx((0.076, 5), rel=1e-10)
    assert exponent_error(sizes, losses) == pytest.approx(0, abs=1e-12)


def test_the_error_is_that_of_least_squares() -> None:
    source = np.random.default_rng(1)
    sizes = np.geomspace(1e3, 1e6, 7)
    losses = 4 * sizes**-0.1 * np.exp(source.normal(0, 0.02, 7))
    (slope, _), covariance = np.polyfit(np.log(sizes), np.log(losses), 1, cov="unscaled")
    residuals = np.log(losses) - np.polyval(np.polyfit(np.log(sizes), np.log(losses), 1), np.log(sizes))
    want = math.sqrt(covariance[0, 0] * (residuals**2).sum() / 5)
    assert fit_power_law(sizes, losses)[0] == pytest.approx(-slope)
    assert exponent_error(sizes, losses) == pytest.approx(want)


@pytest.mark.parametrize(
    ("sizes", "losses", "says"),
    [
        ([1, 2], [1], "the number of losses is 1, expected that of sizes = 2"),
        ([5, 5], [1, 2], "the number of different sizes is 1"),
        ([0, 5], [1, 2], "a size is 0"),
        ([1, 5], [1, math.nan], "a loss is nan"),
    ],
    ids=["lengths", "one-size", "zero", "nan"],
)
def test_what_has_no_line_is_refused(sizes: list[float], losses: list[float], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit_power_law(sizes, losses)
    with pytest.raises(ValueError, match="alpha"):
        exponential_moving_average(losses, 0)
    with pytest.raises(ValueError, match="at least 3"):
        exponent_error([1, 2], [2, 1])


def test_the_corrected_average_does_not_cling_to_the_first_value() -> None:
    """Would break if the curve of a short run were drawn above all but its first losses."""
    values = [10.0] + [1.0] * 99
    assert bias_corrected_average(values, 0.01)[-1] < 1.2 < exponential_moving_average(values, 0.01)[-1]
    assert bias_corrected_average([3.0] * 5, 0.2) == pytest.approx([3.0] * 5)
    assert bias_corrected_average([1.0, 2.0], 0.5) == pytest.approx([1.0, (0.5 * 1 + 2) / 1.5])
    long = [float(n % 7) for n in range(3000)]
    plain, corrected = exponential_moving_average(long, 0.01), bias_corrected_average(long, 0.01)
    assert corrected[-1] == pytest.approx(plain[-1], rel=1e-6)
    with pytest.raises(SizeError, match="alpha"):
        bias_corrected_average([1.0], 0.0)
