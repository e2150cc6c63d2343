"""A first output that is the declared one laid out anew is no other kind of result."""

import numpy as np
import pytest

from conformkit.conformance.probing.layouts_alike import laid_out_anew, tells_of_positions


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ((2, 5, 12), (2, 5, 12), True), ((120,), (2, 5, 12), True), ((2, 5, 12), (10, 12), True),
        ((2, 1, 5, 12), (2, 5, 12), True), ((5, 2, 12), (2, 5, 12), True), ((2, 5, 3, 4), (2, 5, 12), True),
        ((2, 3, 4, 4), (2, 4, 12), False), ((2, 3, 5, 5), (2, 5, 12), False), ((2, 5, 5), (2, 5, 12), False),
        ((), (2, 5, 12), False),
    ],
    ids=str,
)  # fmt: skip
def test_axes_that_are_joined_or_reordered_make_no_other_array(one, other, alike):
    # (2, 3, 4, 4) are weights of three heads: as many numbers, and other axes
    assert laid_out_anew(np.ones(one), np.ones(other)) is alike


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ((2, 5, 13), True), ((2, 5, 3, 4), True), ((5, 12), True), ((2, 5, 2), True), ((2, 5), False),
        ((2, 12), False), ((2, 5, 1), False), ((2, 6, 12), True), ((2, 1, 12), False), ((), False),
        ((3, 2, 5, 5), False),
    ],
    ids=str,
)  # fmt: skip
def test_numbers_of_the_same_positions_may_be_meant_as_the_output(shape, told):
    # one number for each position is a loss or a gate, a row's mean has no positions
    assert tells_of_positions(np.full(shape, 3.0), np.ones((2, 5, 12))) is told


def test_weights_of_attention_and_whole_numbers_are_no_output():
    output = np.ones((2, 5, 12))
    assert not tells_of_positions(np.full((2, 5, 5), 0.2), output)
    assert not tells_of_positions(np.full((2, 5, 5), 3), output)
