"""Drawn roundings are as large as the formula makes them."""

import numpy as np
import pytest

from conformkit.spec.attention import softmax
from conformkit.spec.rounding import UNIT, allowed_by, room, roundings

ROWS = np.random.default_rng(0).normal(size=(200, 64)) + 3.0
UNIFORM = 3**-0.5
"""The standard deviation of a number drawn within ±1."""


def spread(definition, x, precision="bfloat16"):
    """Return the standard deviation in units of the format, as a number for all results."""
    want = definition(x)
    drawn = roundings(lambda _, named: definition(named["x"]), {}, {"x": x}, want, precision)
    return float(np.sqrt((drawn**2).mean()) / UNIT[precision])


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_one_operation_rounds_once(precision):
    x = np.ones((100, 100))
    assert spread(lambda x: 0.5 * x, x, precision) == pytest.approx(0.5 * UNIFORM, rel=0.05)


def test_the_error_of_a_sum_grows_with_the_root_of_its_terms():
    short = spread(lambda x: x[:, :16].sum(-1) / 16, ROWS)
    long = spread(lambda x: x.sum(-1) / 64, ROWS)
    assert long / short == pytest.approx(2.0, rel=0.2)


def test_a_product_of_matrices_adds_as_many_terms_as_it_has_columns():
    assert spread(lambda x: x @ x / 64, np.ones((64, 64))) == pytest.approx(8 * UNIFORM, rel=0.1)


def test_a_difference_that_cancels_keeps_the_error_of_what_it_takes():
    def difference(x):
        return (x + 100.0) - 100.0

    assert spread(difference, np.full((100, 100), 0.01)) == pytest.approx(100 * UNIFORM, rel=0.05)


def test_large_scores_make_weights_uncertain():
    assert spread(softmax, 20 * ROWS) > 3 * spread(softmax, ROWS)


def test_a_table_is_rounded_before_it_is_used_and_a_number_is_not():
    x, table = np.full((100, 100), 0.01), np.full((100, 100), 100.0)
    assert spread(lambda x: (x + 99.99) - table, x) == pytest.approx(100 * 2**0.5 * UNIFORM, rel=0.05)
    assert spread(lambda x: x + 0.01, x) == pytest.approx(0.02 * UNIFORM, rel=0.05)


@pytest.mark.parametrize("exact", [np.negative, np.abs, lambda x: x.max(-1), lambda x: np.where(x > 3, x, 0.0)])
def test_what_only_moves_numbers_rounds_nothing(exact):
    assert spread(exact, ROWS) == 0.0


def test_marks_survive_what_moves_numbers():
    def joined(x):
        parts = np.concatenate([x[:, :3], x[:, 3:]], axis=-1)
        return np.where(parts > 0, np.swapaxes(parts, 0, 1).T.reshape(parts.shape), 0.0) * 1.0

    assert spread(joined, np.ones((50, 50))) == pytest.approx(UNIFORM, rel=0.05)


def test_a_number_may_be_off_as_far_as_its_row_and_by_its_own_rounding():
    """Would break if a row that varies little were allowed less than its neighbors need, or nothing at all."""
    drawn, want = np.zeros((4, 2, 3)), np.array([[100.0, 0.0, 0.0], [0.0, 0.0, -2.0]])
    drawn[:, 0, 1] = [3.0, -3.0, 3.0, -3.0]
    allowed, unit = allowed_by(drawn, want, "bfloat16"), UNIT["bfloat16"]
    sigmas = allowed[0, 1] / 3.0
    assert 4 <= sigmas <= 10
    assert allowed[0] == pytest.approx([sigmas * 3**0.5 + 100 * unit, 3 * sigmas, sigmas * 3**0.5])
    assert allowed[1] == pytest.approx([0.0, 0.0, 2 * unit])


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_results_rounded_to_a_format_are_within_their_room_and_others_are_not(precision):
    """Would break if a format's own error were no longer allowed, or if ten times as much were."""
    x, w = ROWS[:8, :32], np.random.default_rng(1).normal(size=(32, 5))
    want = x @ w
    own = room(lambda weights, inputs: inputs["x"] @ weights["w"], {"w": w}, {"x": x}, want, precision)
    unit = UNIT[precision]
    error = unit * np.sqrt((np.abs(x) ** 2) @ (w**2)) + unit * np.abs(want)
    assert (own > error).all()
    assert (own < 60 * error).all()
