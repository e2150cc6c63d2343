"""A first output that is the declared one laid out anew is no other kind of result."""

import numpy as np
import pytest

from conformkit.conformance.probing.layouts_alike import laid_out_anew


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
