"""Values that are not arrays cross the wire as bounded JSON, in any order of traversal."""

from __future__ import annotations

import numpy as np
import pytest

from conformkit.conformance.driver.wire.arrays import OutputError
from conformkit.conformance.driver.wire.values import MOST, NotPlain, as_json, from_json


def nested(value: object, depth: int) -> object:
    return nested([value], depth - 1) if depth else value


def sent(value: object) -> object:
    return as_json(value, lambda item: isinstance(item, np.ndarray), lambda array: (array, ""))


@pytest.mark.parametrize("value", [[1, 2, 3], [[1], []], [1, 2.5, True, None], ["é", 7], nested([1, 2], 11)])
def test_values_arrive_as_they_are(value: object) -> None:
    assert from_json(sent(value)) == value


def test_ids_in_an_array_arrive_as_lists() -> None:
    assert from_json(sent(np.arange(6).reshape(2, 3))) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1])
@pytest.mark.parametrize("beside", [[1], [1.5]])
def test_a_number_beyond_64_bits_is_refused_on_both_sides(number: int, beside: list[object]) -> None:
    with pytest.raises(OutputError, match="64 bits"):
        sent([*beside, number])
    with pytest.raises(NotPlain, match="64 bits"):
        from_json([*beside, number])


def test_lists_are_bounded_in_depth_and_number() -> None:
    for value in (nested([1], 13), [1] * (MOST + 1), [[1] * (MOST // 2)] * 3):
        with pytest.raises(OutputError, match="nested too deep or holds more"):
            sent(value)
    with pytest.raises(NotPlain, match="nested too deep"):
        from_json(nested([1], 13))
    assert from_json(sent([1] * (MOST - 1))) == [1] * (MOST - 1)
