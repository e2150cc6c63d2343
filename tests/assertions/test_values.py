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


def refused(read: Any, *arguments: Any, **options: Any) -> str:
    """Return what is said of a value that is refused."""
    with pytest.raises(ClauseFailure) as caught:
        read("it", *arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("read", "arguments", "said"),
    [
        (values.number, (None,), "it is None, expected a number"),
        (values.number, (True,), "it is bool, expected a number"),
        (values.number, ([1.0, 2.0],), "it is list of float, expected a number"),
        (values.number, (float("inf"),), "it is inf, expected a finite number"),
        (values.numbers, ([True],), "it holds list of bool, expected numbers"),
        (values.numbers, ([["a"]],), "it holds list of list of string, expected numbers"),
        (values.numbers, ([[1.0], [2.0, 3.0]],),
         "it is list of list of float of unequal length, expected an array of numbers"),
        (values.numbers, ([1.0, 2.0], (3,)), "it has shape (2,), expected (3,)"),
        (values.ids, ([1.5],), "it holds list of float, expected whole numbers"),
        (values.ids, ([], (2,)), "it has shape (0,), expected (2,)"),
        (values.text, (3,), "it is int, expected a string"),
        (values.several, ([1, 2], 3), "it returned 2 values, expected 3"),
        (values.several, ("ab", 2), "it returned string, expected 2"),
        (values.close, (1.5, 1.0), "it is 1.5, expected 1, relative tolerance"),
    ],
)  # fmt: skip
def test_what_a_tool_returns_is_refused_in_words_that_say_what_was_expected(
    read: Any, arguments: Any, said: str
) -> None:
    """Would break if a check of a type were gone, and the first comparison ended in an exception of NumPy's."""
    assert refused(read, *arguments).startswith(said)


def test_values_come_back_as_they_are_meant() -> None:
    assert values.number("it", [[[2]]]) == 2.0
    assert values.numbers("it", [[1, 2], [3, 4]], (2, 2)).dtype == np.float64
    assert values.text("it", "a") == "a"
    assert values.several("it", {"a": 1, "b": 2}, 2) == values.several("it", [1, 2], 2) == [1, 2]


def test_a_number_may_be_off_by_a_share_of_the_wanted_one_or_of_a_scale() -> None:
    """Would break if small numbers were compared more closely than what they are the difference of."""
    values.close("it", 1.0009, 1.0, allowed=1e-3)
    assert "expected 1" in refused(values.close, 1.0011, 1.0, allowed=1e-3)
    values.close("it", 0.0009, 0.0, allowed=1e-3, scale=1.0)
    assert "expected 0" in refused(values.close, 0.0009, 0.0, allowed=1e-3)


@pytest.mark.parametrize(("value", "said"), [("a b", "'a b'"), ("a\nb", r"'a\nb'"), ("x" * 70, repr("x" * 60))])
def test_texts_are_shown_short_and_in_one_line(value: str, said: str) -> None:
    assert values.shown(value) == said
