"""Arrays are compared relative to what is wanted, and a factor is found where the definition has one."""

from __future__ import annotations

import numpy as np
import pytest

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.diagnosis.comparing import Seen, _best_factor, _merged, distance, first, neutral_rows

WANT = np.array([[1.0, -4.0], [0.0, 2.0]])


@pytest.mark.parametrize(
    ("got", "off"),
    [
        (WANT, 0.0), (np.array([[1.0, -3.0], [0.0, 2.0]]), 0.25), (-WANT, 2.0), (0 * WANT, 1.0), (WANT[:1], np.inf),
        (WANT * [[np.nan, 1], [1, 1]], np.inf), (WANT * [[1, np.inf], [1, 1]], np.inf),
    ],
)  # fmt: skip
def test_a_distance_is_relative_to_the_largest_number_wanted(got: np.ndarray, off: float) -> None:
    """Would break if NaN or another shape were near, or if one wrong entry were averaged away."""
    assert distance(got, WANT) == off
    if got.shape == WANT.shape:
        seen = Seen({}, WANT, got, WANT)
        assert (seen.error, seen.largest) == (off, 4 * off)


@pytest.mark.parametrize("factor", [0.05, 0.125, 0.5, 1.0, 1.4142, 2.0, 5.0])
def test_the_factor_that_leaves_nothing_is_found(factor: float) -> None:
    """Would break if the search began too far off, or stopped too early."""
    x = np.linspace(-2, 2, 9)
    found, left = _best_factor(lambda tried: np.tanh(tried * x) - np.tanh(factor * x))
    assert found == pytest.approx(factor, rel=1e-4)
    assert left < 1e-5


def test_where_no_factor_fits_the_nearest_is_said_with_what_it_leaves() -> None:
    assert _best_factor(lambda _: np.ones(3)) == (0.1, 1.0)
    found, left = _best_factor(lambda tried: np.array([tried - 2.0, 0.5]))
    assert (found, left) == (pytest.approx(1.7, abs=0.31), 0.5)
    assert _best_factor(lambda tried: np.array([1.0 + tried]))[0] == 0.1
    assert _best_factor(lambda _: np.array([np.nan]))[1] == np.inf


@pytest.mark.parametrize(("length", "width"), [(4, 6), (5, 6), (4, 5), (1, 2)])
def test_neutral_rows_are_changed_by_no_norm(length: int, width: int) -> None:
    rows = neutral_rows(Draw(0, "rows"), 3, length, width)
    assert rows.shape == (3, length, width)
    assert rows.mean(-1) == pytest.approx(0.0)
    assert rows.var(-1) == pytest.approx(1.0)
    assert (rows[1] == -rows[0]).all()
    assert (rows[2] == rows[0]).all()
    assert width % 2 or set(rows.flat) == {1.0, -1.0}
    assert length < 2 or rows[0, :2].mean(0) == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("blocks.1.norm1", "start with the norm of attention of blocks.1 (`blocks.1.norm1`): x"),
        ("scale", "start with the scaling of the scores (`scale`): x"), ("anything", "start with anything: x"),
    ],
)  # fmt: skip
def test_a_part_is_named_in_words_where_its_name_says_little(path: str, words: str) -> None:
    assert first(path, "x").sentence == words


def test_later_changes_of_weights_win() -> None:
    before = {"a": WANT, "b": WANT}
    assert _merged(before, {"a": 2 * WANT}, {"a": 3 * WANT})["a"][0, 0] == 3.0
    assert before["a"] is WANT
