"""Numbers of a record are those of others, or they are not: within a rounding, and by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from conformkit.conformance.discovery.tracing.numbers import by_text, centered, close, columns, factor

X = np.random.default_rng(0).normal(size=(2, 3, 4))
LARGEST = np.abs(X).max()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (X, X, True), (X + 0.9e-5 * LARGEST, X, True), (X + 1.2e-5 * LARGEST, X, False), (X[:1], X, False),
        (X[:0], X[:0], False), (X * np.inf, X, False), (X, X * np.nan, False), (0 * X, 0 * X, True),
        (0 * X + 1e-12, 0 * X, False), (X, X.reshape(2, 4, 3), False),
    ],
)  # fmt: skip
def test_numbers_are_close_within_a_rounding(one: np.ndarray, other: np.ndarray, same: bool) -> None:
    """Would break if nothing were close to nothing, or what is infinite to anything."""
    assert close(one, other) is same


def test_a_text_is_read_batch_first_and_positions_first() -> None:
    first, other = by_text(np.arange(24), 2, 3)
    assert first.tolist() == np.arange(24).reshape(2, 3, 4).tolist()
    assert other.tolist() == np.arange(24).reshape(3, 2, 4).swapaxes(0, 1).tolist()
    assert not [*by_text(np.arange(25), 2, 3), *by_text(np.empty(0), 2, 3)]


@pytest.mark.parametrize(
    ("part", "found"),
    [
        (X[..., [2, 0]], [2, 0]), (X, [0, 1, 2, 3]), (X[..., [1, 1]], None), (X[..., [2]] + 1e-3, None),
        (X[..., [3]] * (1 + 1e-7), [3]), (X[:1], None), (X[..., :0], None), (X[..., ::-1], [3, 2, 1, 0]),
    ],
)  # fmt: skip
def test_columns_are_found_wherever_they_are_each_once(part: np.ndarray, found: Any) -> None:
    got = columns(X, part)
    assert (got if got is None else got.tolist()) == found


@pytest.mark.parametrize(
    ("one", "by"),
    [(3 * X, 3.0), (-X / 2, -0.5), (X, 1.0), (0 * X, None), (X + 0.1, None), (X[:1], None), (X * np.nan, None)],
)
def test_a_factor_is_one_for_all_numbers(one: np.ndarray, by: float | None) -> None:
    assert factor(one, X) == (by if by is None else pytest.approx(by))
    assert factor(one, 0 * one) is None


@pytest.mark.parametrize("axis", [1, 2])
def test_the_mean_of_what_is_seen_is_taken_off_and_nothing_else(axis: int) -> None:
    seen = np.random.default_rng(1).uniform(size=X.shape) < 0.6
    seen[0] = False
    got = centered(np.where(seen, X, np.nan), seen, axis)
    assert (got[~seen] == 0).all()
    assert got.sum(axis=axis) == pytest.approx(0.0)
    differ = np.where(seen, got - X, np.nan)
    spread = np.nanmax(differ[1:], axis=axis) - np.nanmin(differ[1:], axis=axis)
    assert np.nanmax(spread) < 1e-12
