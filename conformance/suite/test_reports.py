"""Clauses of spec/reports.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check, check_close, check_shape, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.values import TOLERANCE, close, numbers, several
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.arrays import Array
from conformkit.spec.attention import softmax
from conformkit.spec.reports import attention_entropy as entropy_of
from conformkit.spec.reports import exponential_moving_average as smoothed
from conformkit.spec.reports import exponentially_weighted_mean as weighted
from conformkit.spec.reports import fit_power_law as fitted
from conformkit.spec.reports import rolling_mean as rolled


@clause("REP-EMA")
def test_a_smoothed_curve_follows_its_values_with_the_weight_alpha(
    exponential_moving_average: Tool, draw: Draw
) -> None:
    stored = facts("REP-EMA")[0]
    for values, alpha in each_of("values, alpha", [
        (stored.inputs["x"], stored.inputs["α"]), ([2.5], 0.3), (draw.values(9).tolist(), 0.3), ([1.0, 3.0], 1.0),
        ((1e6 * draw.values(9)).tolist(), 0.001), ((1e-6 * draw.values(5)).tolist(), 0.99),
    ]):  # fmt: skip
        got = exponential_moving_average(values=np.array(values), alpha=alpha)
        want = np.array(smoothed(values, alpha))
        found = numbers("the smoothed values", got, want.shape)
        corrected = np.array(weighted(values, alpha))
        nearer = corrected if np.abs(found - corrected).max() < np.abs(found - want).max() else want
        check_close("the smoothed values", found, nearer, TOLERANCE)


@clause("REP-ROLLING")
def test_a_rolling_mean_averages_what_is_in_its_window(rolling_mean: Tool, draw: Draw) -> None:
    stored = facts("REP-ROLLING")[0]
    long = np.arange(250.0), stored.inputs["window"]
    for values, window in each_of(
        "values, window", [long, (draw.values(9), 4), (draw.values(5), 1), (draw.values(5), 5)]
    ):
        got = numbers("the rolling means", rolling_mean(values=np.asarray(values), window=window))
        whole = rolled(values, window)
        if got.shape != (len(values),):
            check_shape("the rolling means", got, whole.shape)
        known = got[~np.isnan(got)]
        check(f"{len(known)} rolling means are numbers, expected at least {len(whole)}", len(known) >= len(whole))
        wanted = [
            np.where(np.isnan(got), 0.0, want) for want in _rolled_everywhere(np.asarray(values), window, len(got))
        ]
        found = np.nan_to_num(got)
        check_close("the rolling means", found, min(wanted, key=lambda want: np.abs(found - want).max()), TOLERANCE)


@clause("REP-ROLLING-WHOLE")
def test_a_rolling_mean_is_over_whole_windows_only(rolling_mean: Tool, draw: Draw) -> None:
    for count, window in each_of("count, window", [(9, 4), (250, 100)]):
        got = numbers("the rolling means", rolling_mean(values=draw.values(count), window=window))
        check_shape("the rolling means", got, (count - window + 1,))


def _rolled_everywhere(values: Array, window: int, count: int) -> Iterator[Array]:
    """Yield the means of so many windows; where there are incomplete ones, for each place of the first whole one."""
    for first in (0,) if count < len(values) else {0, (window - 1) // 2, window // 2, window - 1}:
        yield np.array([values[max(0, at - first) : at - first + window].mean() for at in range(count)])


@clause("REP-ENTROPY-ZERO")
def test_a_weight_of_0_adds_nothing_to_the_entropy(attention_entropy: Tool) -> None:
    for count in each_of("count", [2, 5]):
        rows = np.tril(np.ones((count, count)))
        causal = (rows / rows.sum(axis=-1, keepdims=True))[None, None]
        got = numbers("the entropy of causal weights", attention_entropy(weights=causal), (1, 1, count))
        want = np.log(np.arange(1, count + 1))[None, None]
        check_close("the entropy of causal weights", got, want, 1e-4)
        single = np.eye(count)[None, None]
        got = numbers("the entropy of single keys", attention_entropy(weights=single), (1, 1, count))
        check_close("the entropy of single keys", got, np.zeros((1, 1, count)), 1e-4, scale=1.0)


@clause("REP-ENTROPY")
def test_the_entropy_is_that_of_the_weights(attention_entropy: Tool, draw: Draw) -> None:
    longer = [(1, 1, 2, draw.integer(low, 2 * low)) for low in (64, 128, 256, 512)]
    for shape, scale in each_of("shape, scale", [((2, 3, 4, 5), 2.0), ((1, 2, 6, 3), 2.0), ((1, 2, 5, 9), 30.0),
                                                 *((shape, 2.0) for shape in longer)]):  # fmt: skip
        weights = softmax(scale * draw.values(*shape))
        got = numbers("the entropy", attention_entropy(weights=weights), shape[:-1])
        check_close("the entropy", got, entropy_of(weights), 1e-4)


@clause("REP-SCALING")
def test_the_exponent_says_how_fast_the_loss_falls(fit_power_law: Tool) -> None:
    stored = facts("REP-SCALING")[0]
    under(f"golden {stored.number}, {stored.title}")
    exponent, _ = _fit(fit_power_law, stored.inputs["N"], stored.inputs["L"])
    close("the exponent", exponent, -stored.value["slope"], allowed=1e-4)
    for sizes, losses in each_of("sizes, losses", _series()):
        close("the exponent", _fit(fit_power_law, sizes, losses)[0], fitted(sizes, losses)[0], allowed=1e-4)


@clause("REP-SCALING-FACTOR")
def test_the_factor_is_the_loss_of_size_1(fit_power_law: Tool) -> None:
    for sizes, losses in each_of("sizes, losses", _series()):
        close("the factor", _fit(fit_power_law, sizes, losses)[1], fitted(sizes, losses)[1], allowed=1e-3)


def _series() -> list[tuple[list[float], list[float]]]:
    exact = [10.0, 100.0, 1000.0, 10_000.0]
    return [
        (exact, [3.0 * size**-0.25 for size in exact]),
        ([1e3, 3e3, 1e4, 1e5], [4.1, 3.6, 2.9, 2.2]),
        ([2.0, 8.0, 32.0], [1.0, 1.5, 2.0]),
    ]


def _fit(fit_power_law: Tool, sizes: list[float], losses: list[float]) -> tuple[Any, Any]:
    exponent, factor = several("fit_power_law", fit_power_law(sizes=np.array(sizes), losses=np.array(losses)), 2)
    return exponent, factor
