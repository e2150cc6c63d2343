"""Beams are compared one by one, and none may be missing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.evidence.beams import Beams, check_penalized, searched
from conformkit.conformance.suite import test_decoding, test_seq2seq_decoding
from conformkit.spec.decoding import beam_search

LOGITS = np.array([0.3, 2.0, 1.0, -1.0])
TOTALS = {1: -1.0, 2: -1.3, 3: -1.1}
WANTED = beam_search(lambda rows: np.tile(LOGITS, (len(rows), 1)), np.array([1]), 2, 3)


def of_texts(beams: Beams) -> None:
    test_decoding._compare(beams, 0, WANTED)


def of_pairs(beams: Beams) -> None:
    instance: Any = SimpleNamespace(sizes={"pad_id": 0})
    test_seq2seq_decoding._compare(lambda rows: np.tile(LOGITS, (len(rows), 1)), instance, beams, 2, 3)


@pytest.mark.parametrize("compare", [of_texts, of_pairs])
@pytest.mark.parametrize(
    ("kept", "told"),
    [([0, 1, 2], ""), ([0, 1], "there are 2 beams, expected 3"), ([], "there are 0 beams"), ([1, 0, 2], "a beam is")],
    ids=["all", "one-missing", "none", "another-order"],
)
def test_as_many_beams_come_as_are_wanted_the_best_first(compare: Any, kept: list[int], told: str) -> None:
    """Would break if a search that loses a beam, or returns none, were compared on what it has and passed."""
    new = np.array([WANTED[number][1] for number in kept], np.int64).reshape(1, len(kept), 2)
    beams = Beams(new, np.array([[WANTED[number][0] for number in kept]]).reshape(1, len(kept)))
    if not told:
        compare(beams)
        return
    with pytest.raises(ClauseFailure, match=told):
        compare(beams)


@pytest.mark.parametrize(("end", "texts"), [(None, 9), (2, 7)], ids=["no-end", "end"])
def test_beams_beyond_the_number_of_texts_are_not_asked_for(end: int | None, texts: int) -> None:
    """Would break if texts that end early were counted as those that don't: right code would lack beams, or wrong."""
    instance: Any = SimpleNamespace(sizes={"vocab_size": 3})
    prompts = np.array([[0, 1]])

    def search(found: int) -> Beams:
        rows = [[[*prompts[0].tolist(), 0, number] for number in range(found)]]
        tool: Any = lambda **_: [rows, [[0.0] * found]]  # noqa: E731
        return searched(tool, instance, prompts, 2, 10, **({} if end is None else {"eos_id": end}))

    assert search(texts).new.shape == (1, texts, 2)
    with pytest.raises(ClauseFailure, match="the beams"):
        search(texts - 1)


@pytest.mark.parametrize(
    ("order", "told"),
    [
        (lambda own: TOTALS[len(own)], "in the order of their sums, before the penalty$"),
        (lambda own: TOTALS[len(own)] / (4 + len(own)), "in the order of sums whose penalty counts the prompt$"),
        (lambda own: -len(own), "expected them to fall$"),
    ],
    ids=["sums", "with-prompt", "neither"],
)
def test_beams_that_are_ranked_by_something_else_say_by_what(order: Any, told: str) -> None:
    """Would break if a search that divides by the prompt's length, too, when it ranks were said to return no order."""
    texts = sorted(([0] * (count - 1) + [1] for count in TOTALS), key=order, reverse=True)
    new = np.array([[[*own, *[1] * (3 - len(own))] for own in texts]])
    beams = Beams(new, np.array([[TOTALS[len(own)] / len(own) for own in texts]]))
    with pytest.raises(ClauseFailure, match=told):
        check_penalized(beams, lambda own: TOTALS[len(own)], 1.0, 1, before=4)
