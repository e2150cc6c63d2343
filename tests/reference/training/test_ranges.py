"""What a key of a training configuration may be is what its words say, to the last number."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

import pytest

from conformkit.reference.training.ranges import CHECKS

TINY = 1e-9
NUMBERS = [key for key, (_, words) in CHECKS.items() if re.match(r"(from|above|between|at least) \d", words)]
WORDS = [key for key, (_, words) in CHECKS.items() if words.startswith("one of ")]


def bounds(words: str) -> Iterator[tuple[float, bool]]:
    """Yield numbers at and beside each bound that the words name, and whether they are allowed."""
    for said, number in re.findall(r"(from|to|above|at most|below|between|and|at least) (\d+)", words):
        bound, included = float(number), said not in {"above", "below"}
        beyond = -1 if said in {"from", "above", "between", "at least"} else 1
        yield from ((bound, included), (bound + beyond * TINY * max(1.0, bound), False))
        yield bound - beyond * 0.25, True


@pytest.mark.parametrize("key", NUMBERS)
def test_a_number_may_be_what_the_words_say(key: str) -> None:
    """Would break if a bound moved by one, or if a range took in the end that it leaves out."""
    check, words = CHECKS[key]
    for value, allowed in bounds(words):
        assert check(value) is allowed, (value, words)
    assert not check(math.nan)
    if words.startswith("at least") and "below" not in words:
        assert not check(math.inf)


@pytest.mark.parametrize("key", WORDS)
def test_a_word_may_be_one_that_is_listed(key: str) -> None:
    check, words = CHECKS[key]
    for word in words.removeprefix("one of ").split(", "):
        assert check(word)
        assert not check(f"{word}_")


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("data.corpus", " ", False), ("data.corpus", "a.txt", True), ("samples.temperatures", [0.0, 2.0], True),
        ("samples.temperatures", [0.5, -0.5], False), ("samples.temperatures", [math.inf], False),
        ("data.symbols", 26, True), ("data.symbols", 27, False), ("data.pairs", 20, True), ("data.pairs", 19, False),
        ("data.vocab_size", 255, False), ("data.shortest", 0, False), ("model.num_decoder_layers", 0, True),
        ("optimizer.peak", 1000.0, True), ("training.own_ids", 1.0, True), ("model.dropout", 1.0, False),
    ],
)  # fmt: skip
def test_the_ranges_themselves_are_these(key: str, value: object, allowed: bool) -> None:
    """Would break if a range moved together with its words."""
    assert CHECKS[key][0](value) is allowed


def test_each_key_is_tested() -> None:
    assert CHECKS.keys() - {*NUMBERS, *WORDS} == {"data.corpus", "samples.temperatures"}
