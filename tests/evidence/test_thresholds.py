"""From a large failing case to the smallest one, and a sentence about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from conformkit.conformance.evidence.thresholds import smallest_failing
from conformkit.conformance.findings.words import begins

DOMAIN = {"num_heads": (1, 16), "head_width": (1, 256), "tokens": (1, 600), "batch": (1, 64)}
LARGE = {"num_heads": 4, "head_width": 128, "tokens": 590, "batch": 40}
Sizes = Mapping[str, int]


def anything(_sizes: Sizes) -> bool:
    return True


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (lambda s: s["tokens"] > 256, "right up to T = 256, wrong from T = 257 on"),
        (lambda s: s["tokens"] >= 101, "right up to T = 100, wrong from T = 101 on"),
        (lambda s: s["batch"] > 16, "right up to batch size = 16, wrong from batch size = 17 on"),
        (lambda s: s["head_width"] == 128, "wrong at head width = 128, right at 127 and 129"),
        (lambda s: s["head_width"] > 100, "right up to head width = 100, wrong from head width = 101 on"),
        (lambda s: s["num_heads"] * s["head_width"] >= 32, "right up to d_model = 31, wrong from d_model = 32 on"),
        (lambda s: s["num_heads"] > 1 and s["head_width"] == 64, "wrong at head width = 64, right at 63 and 65"),
        (lambda s: s["num_heads"] * s["head_width"] % 64 == 0, "wrong where d_model is a multiple of 64"),
        (lambda s: s["head_width"] % 32 == 0, "wrong where head width is a multiple of 32"),
        (lambda s: s["tokens"] % 24 == 0, "wrong where T is a multiple of 24"),
        (lambda s: s["tokens"] > 64 and s["tokens"] % 64 == 0, "wrong where T is a multiple of 64, from 128 on"),
        (lambda s: s["tokens"] > 64 and s["tokens"] % 2 == 1, "wrong where T is odd, from 65 on"),
        (
            lambda s: s["tokens"] > 203 and s["tokens"] % 7 in {2, 4, 6},
            "wrong from T = 240 on, but not at every size",
        ),
        (lambda s: s["num_heads"] > 8, "right up to number of heads = 8, wrong from number of heads = 9 on"),
        (
            lambda s: s["tokens"] > 128 and s["batch"] > 16,
            "right up to T = 128, wrong from T = 129 on and right up to batch size = 16, wrong from batch size = 17 on",
        ),
    ],
)
def test_the_size_that_matters_is_found_with_its_threshold(wrong: Callable[[Sizes], bool], sentence: str) -> None:
    cases = (
        LARGE, {**LARGE, "head_width": 64}, {**LARGE, "num_heads": 12, "head_width": 60}, {**LARGE, "tokens": 591},
        {**LARGE, "tokens": 576},
    )  # fmt: skip
    failing = next(case for case in cases if wrong(case))
    found = smallest_failing(wrong, anything, failing, DOMAIN)
    assert begins(found.threshold) == sentence
    assert wrong(found.sizes)


def test_what_does_not_matter_is_small_in_the_end() -> None:
    found = smallest_failing(lambda sizes: sizes["tokens"] > 256, anything, LARGE, DOMAIN)
    assert found.sizes["tokens"] == 257
    assert found.sizes["num_heads"] * found.sizes["head_width"] <= 21
    assert found.sizes["batch"] <= 2


def test_few_sizes_are_tried() -> None:
    tried = []

    def wrong(sizes: Sizes) -> bool:
        tried.append(sizes)
        return sizes["tokens"] > 333

    smallest_failing(wrong, anything, LARGE, DOMAIN)
    assert len(tried) < 60


@pytest.mark.parametrize(
    ("fits", "sentence"),
    [
        (lambda size: size % 2 == 0, "right up to head width = 100, wrong from head width = 102 on"),
        (lambda size: size in {2, 7, 102, 128}, "wrong at head width = 102"),
    ],
    ids=["even", "few"],
)
def test_nothing_is_said_of_sizes_that_cannot_be_judged(fits: Callable[[int], bool], sentence: str) -> None:
    def wrong(sizes: Sizes) -> bool:
        return fits(sizes["head_width"]) and sizes["head_width"] > 101

    failing = {**LARGE, "num_heads": 1, "head_width": 128}
    found = smallest_failing(wrong, lambda sizes: fits(sizes["head_width"]), failing, {**DOMAIN, "num_heads": (1, 1)})
    assert begins(found.threshold) == sentence


PAIRS = {
    "batch": (1, 64), "tokens": (1, 600), "keys": (1, 600), "new_ids": (1, 300), "num_encoder_layers": (1, 12),
    "num_decoder_layers": (1, 12),
}  # fmt: skip
MUCH = {"batch": 60, "tokens": 590, "keys": 500, "new_ids": 280, "num_encoder_layers": 1, "num_decoder_layers": 12}


@pytest.mark.parametrize(
    ("wrong", "failing", "sentence"),
    [
        (
            lambda s: s["batch"] * s["tokens"] > 256,
            {},
            "right up to batch size × T = 256, wrong from batch size × T = 257 on",
        ),
        (
            lambda s: s["batch"] * s["tokens"] > 4096,
            {"tokens": 100},
            "right up to batch size × T = 4096, wrong from batch size × T = 4097 on",
        ),
        (
            lambda s: s["tokens"] + s["new_ids"] > 256,
            {"new_ids": 20},
            "right up to T + number of new ids = 256, wrong from T + number of new ids = 257 on",
        ),
        (lambda s: s["tokens"] > s["keys"] + 50, {"tokens": 300, "keys": 12}, "wrong where T is larger than Tk + 50"),
        (
            lambda s: s["num_decoder_layers"] > s["num_encoder_layers"] + 3,
            {},
            "wrong where number of decoder layers is larger than number of encoder layers + 3",
        ),
        (
            lambda s: s["tokens"] == s["keys"] > 64,
            {"tokens": 100, "keys": 100},
            "right up to T = Tk = 64, wrong from T = Tk = 65 on",
        ),
        (lambda s: s["tokens"] == 1, {"tokens": 1}, "wrong at T = 1, right at 2"),
        (
            lambda s: s["tokens"] > 128 and s["tokens"] % 128 > 0,
            {},
            "right up to T = 128, wrong from T = 129 on, but not at multiples of 128",
        ),
    ],
)
def test_sizes_that_decide_together_are_named_together(wrong, failing, sentence) -> None:
    found = smallest_failing(wrong, anything, {**MUCH, **failing}, PAIRS)
    assert begins(found.threshold) == sentence
    assert wrong(found.sizes)
    assert found.right is None or not wrong(found.right)


def test_a_width_between_those_of_three_heads_is_found() -> None:
    """Would break if the last right width were that of as many heads: 510 of three."""
    found = smallest_failing(
        lambda s: s["num_heads"] * s["head_width"] > 512, anything, LARGE | {"num_heads": 12}, DOMAIN
    )
    assert begins(found.threshold) == "right up to d_model = 512, wrong from d_model = 513 on"
