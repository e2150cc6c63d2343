"""The masks of the spec, entry by entry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.spec.masks import additive, causal_mask


@given(st.integers(1, 7), st.integers(0, 4))
def test_a_query_may_see_its_own_position_and_earlier_ones(queries, further):
    mask = causal_mask(queries, queries + further)
    assert mask.shape == (queries, queries + further)
    assert mask.dtype == np.bool_
    for t in range(queries):
        for j in range(queries + further):
            assert mask[t, j] == (j <= t + further)


@given(st.integers(1, 7))
def test_without_a_number_of_keys_the_mask_is_square(length):
    np.testing.assert_array_equal(causal_mask(length), causal_mask(length, length))


def test_the_causal_mask_of_five_allows_fifteen_entries():
    assert causal_mask(5).sum() == 15
    assert (~causal_mask(4)).sum() == 6


def test_a_boolean_mask_becomes_zero_and_minus_infinity():
    np.testing.assert_array_equal(additive(np.array([True, False])), [0.0, -np.inf])


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["double", "single"])
def test_a_float_mask_stays_as_it_is(dtype):
    mask = np.array([[0.5, -np.inf], [-2.0, 0.0]], dtype)
    found = additive(mask)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, mask)
