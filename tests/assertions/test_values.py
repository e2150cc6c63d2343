"""Results of tools are checked before they are used."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions import values
from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.driver.wire.values import NotPlain, from_json
from conformkit.conformance.evidence import mask_builders

LONG_AND_SHORT = ["a" * 5000, *[""] * 5000]
"""As an array, each of the short ones takes as much as the long one: 100 MB."""


@pytest.mark.parametrize("read", [values.ids, values.numbers, mask_builders.raw], ids=["ids", "numbers", "mask"])
def test_texts_among_numbers_take_no_memory(read: Any) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ClauseFailure, match="string"):
            read("it", LONG_AND_SHORT)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("value", [["a"], [1, "a"], [1, None], [[1], [{"a": 1}]], {"a": 1}, None, "1"])
def test_values_other_than_numbers_are_reported(value: Any) -> None:
    with pytest.raises(ClauseFailure):
        values.ids("it", value)


@pytest.mark.parametrize("value", [[[1, 2], [3]], [[1], 2], [1.5], [True], [2**63]])
def test_numbers_that_are_not_ids_are_reported(value: Any) -> None:
    with pytest.raises(ClauseFailure):
        values.ids("it", value)


def test_ids_are_taken_as_they_come() -> None:
    assert values.ids("it", [[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert values.ids("it", 7).shape == ()
    assert values.ids("it", []).dtype == np.int64


@pytest.mark.parametrize("value", [10**400, [2**63], {"a": -(2**63) - 1}])
def test_a_forged_number_beyond_64_bits_is_refused(value: Any) -> None:
    # without this, floating-point functions would raise on it in the harness
    with pytest.raises(NotPlain):
        from_json(value)
