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


def test_large_arrays_arrive_beside_the_text_as_lists() -> None:
    large: dict[str, np.ndarray] = {}
    value = as_json([np.zeros((300, 300), np.bool_), 1], lambda i: isinstance(i, np.ndarray), lambda a: (a, ""), large)
    assert [array.size for array in large.values()] == [90_000]
    assert from_json(value, large=large) == [[[False] * 300] * 300, 1]


def test_what_arrays_hold_is_bounded_however_often_they_are_named() -> None:
    """Would break if a short reply could name one array ten thousand times, each time as a list of its own."""
    named, array = {"$array": "0"}, np.zeros(30_000)
    assert from_json(named, large={"0": array}) == [0.0] * 30_000
    with pytest.raises(NotPlain, match="named twice"):
        from_json([named, named], large={"0": array})
    with pytest.raises(NotPlain, match="too large"):
        from_json(named, large={"0": np.zeros((1 << 20) + 1, np.bool_)})
    with pytest.raises(NotPlain, match="more than"):
        from_json(named, large={str(n): np.zeros(1 << 20, np.bool_) for n in range(5)})
    with pytest.raises(NotPlain, match="missing"):
        from_json({"$array": ["0"]}, large={"0": array})
