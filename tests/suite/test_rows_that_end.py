"""New ids of texts that end are taken from what is returned only where it can be that."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.driver.worker import outputs
from conformkit.conformance.evidence import ended_texts
from conformkit.conformance.suite import test_decoding

PROMPTS = np.array([[3, 1, 4], [1, 5, 2]])


def instance(out: np.ndarray, asked: list[dict[str, Any]] | None = None) -> Any:
    """A model that writes this, whatever it is asked for."""

    def generate(_: np.ndarray, count: int, **options: Any) -> SimpleNamespace:
        (asked if asked is not None else []).append({"count": count, **options})
        return SimpleNamespace(out=out)

    return SimpleNamespace(generate=generate)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_up_to_as_many_new_ids_as_asked_for_are_taken(count: int) -> None:
    asked: list[dict[str, Any]] = []
    new = np.arange(2 * count).reshape(2, count)
    found = test_decoding._after(instance(np.hstack([PROMPTS, new]), asked), PROMPTS, 4, 9)
    assert found.tolist() == new.tolist()
    assert [(one["count"], one["eos_id"], one["greedy"]) for one in asked] == [(4, 9, True)]


@pytest.mark.parametrize(
    "out",
    [np.zeros((2, 8)), np.zeros((2, 2)), np.zeros((1, 5)), np.zeros((3, 5)), np.zeros(5), np.zeros((2, 5, 1))],
    ids=["too-many", "prompt-cut", "row-lost", "row-more", "no-rows", "axis-more"],
)
def test_what_is_returned_in_another_form_is_a_failure_that_says_so(out: np.ndarray) -> None:
    """Would break if ids that nobody asked for were cut off unseen, or a lost row ended in an error of the kit."""
    with pytest.raises(ClauseFailure, match=r"prompts \(2, 3\) and at most 4 ids are returned in an array"):
        test_decoding._after(instance(out), PROMPTS, 4, 9)


@pytest.mark.parametrize(
    ("got", "told"),
    [
        ([[5, 9, 9], [7, 6, 9]], ""),
        ([[5, 9, 0], [7, 6, 9]], ""),  # padding behind the end is any one id
        ([[5, 9], [7, 6]], "the batch has 2 new ids, the longest row 3"),
        ([[5, 9, 9], [7, 9, 9]], "a row up to its end id 9"),
        ([[5, 9, 9, 0], [7, 6, 9, 0]], "a row that has ended goes on with"),
    ],
    ids=["end-repeated", "padded", "cut", "wrong", "goes-on"],
)
def test_each_row_ends_where_its_own_text_does(got: list[list[int]], told: str) -> None:
    texts = [[5, 9, 1], [7, 6, 9]]
    if not told:
        test_decoding._check_rows(np.array(got), texts, 9)
        return
    with pytest.raises(ClauseFailure, match=told):
        test_decoding._check_rows(np.array(got), texts, 9)


@pytest.mark.parametrize(
    ("got", "told"),
    [
        ([[5, 0, 0], [7, 6, 0]], ""),
        ([[5, 5], [7, 6]], ""),  # rows of a list, the shorter one filled up on the way
        ([[5, 1, 2], [7, 6, 9]], "a row that has ended goes on with"),
    ],
    ids=["padded", "rows", "goes-on"],
)
def test_rows_may_end_before_their_end_id(got: list[list[int]], told: str) -> None:
    """Would break if the most copied `generate`, which stops before it appends the end id, were red."""
    texts = [[5, 9, 1], [7, 6, 9]]
    if not told:
        test_decoding._check_rows(np.array(got), texts, 9, without=True)
        return
    with pytest.raises(ClauseFailure, match=told):
        test_decoding._check_rows(np.array(got), texts, 9, without=True)


@pytest.mark.parametrize(
    ("alone", "without"), [([5], True), ([5, 9], False), ([5, 1], False)], ids=["left-out", "kept", "goes-on"]
)
def test_an_end_id_is_left_out_of_a_batch_where_it_is_of_a_text_alone(alone: list[int], without: bool) -> None:
    """Would break if a batch that stops a step early passed for one that leaves end ids out."""
    told: Any = SimpleNamespace(instance=instance(np.array([[3, 1, 4, *alone]])), prompts=PROMPTS, count=4)
    texts = [[5, 9, 1], [7, 6, 9]]
    assert test_decoding._ends_without(told, np.array([[5, 0], [7, 6]]), texts, 9) is without


@pytest.mark.parametrize(
    ("got", "without", "right"),
    [([5, 2], True, True), ([5, 2, 9], False, True), ([5], True, False), ([5, 2, 9], True, True)],
    ids=["left-out", "kept", "cut", "now-and-then"],
)
def test_a_text_ends_with_its_end_id_or_before_it(got: list[int], without: bool, right: bool) -> None:
    """Would break if a text that lacks more than its end id passed."""
    assert ended_texts.leaves_end_out(got, [5, 2, 9, 1], 9) == (got == [5, 2])
    if right:
        ended_texts.check_ended(got, [5, 2, 9, 1], 9, without=without)
        return
    with pytest.raises(ClauseFailure, match="the text up to the end id 9"):
        ended_texts.check_ended(got, [5, 2, 9, 1], 9, without=without)


def test_rows_of_a_list_are_filled_up_to_one_length() -> None:
    """Would break if texts of a batch that end one by one, each in a row of its own, were an error."""
    assert outputs.filled_up([[1, 2], [3, 4, 5]]) == [[1, 2, 2], [3, 4, 5]]
    for other in ([[1, 2], []], [[0.5], [1, 2]], [[1, 2], 3], []):
        assert outputs.filled_up(other) == other
