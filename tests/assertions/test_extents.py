"""The sizes that calls had: ranges widen, and ranges of several clauses are joined."""

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure, called, check_close, gathering, related
from conformkit.conformance.assertions.extents import joined, overall, widen


def test_a_range_goes_from_the_smallest_to_the_largest() -> None:
    extents = {}
    for tokens in (5, 2, 600, 30):
        widen(extents, "Block", {"tokens": tokens})
    assert extents == {"Block": {"tokens": (2, 600)}}


def test_clauses_and_components_are_joined() -> None:
    one, other = {"A": {"tokens": (2, 5)}}, {"A": {"tokens": (4, 9), "batch": (1, 1)}, "B": {"tokens": (600, 601)}}
    both = joined([one, other])
    assert both == {"A": {"tokens": (2, 9), "batch": (1, 1)}, "B": {"tokens": (600, 601)}}
    assert overall(both) == {"tokens": (2, 601), "batch": (1, 1)}


def test_calls_count_for_the_clause_that_is_being_checked() -> None:
    called("A", {"tokens": 3})
    with gathering() as evidence:
        called("A", {"tokens": 7})
    assert evidence.extents == {"A": {"tokens": (7, 7)}}


def test_a_factor_is_read_as_the_sizes_of_the_last_call_have_it() -> None:
    """Would break if 1/d_v were said where 1/√d_k is meant, since only d_v was the same in each call of a loop."""
    with gathering():
        called("ScaledDotProductAttention", {"d_k": 1, "d_v": 2, "keys": 3})
        called("ScaledDotProductAttention", {"d_k": 4, "d_v": 2, "keys": 3})
        with pytest.raises(ClauseFailure) as caught:
            check_close("the divisor of the scores", np.asarray(1.0), np.asarray(2.0), 1e-8)
        found = related(caught.value).relation
    assert found is not None
    assert found.names == ("1/√d_k",)
