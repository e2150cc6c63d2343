"""A finding is put into words in one place, and from its fields alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    check_close,
    check_finite,
    check_zero,
    gathering,
    under,
)
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.relation import How, Relation
from conformkit.conformance.findings.setting import Setting
from conformkit.conformance.findings.threshold import Pattern, Threshold
from conformkit.conformance.findings.words import begins, details, message


def found(check, *arguments, **options) -> Finding:
    with gathering():
        under("d_model = 8, causal = True")
        with pytest.raises(ClauseFailure) as caught:
            check(*arguments, **options)
    return caught.value.finding


def test_a_comparison_keeps_the_numbers_themselves():
    """Would break if whoever reads a failure had to take a sentence apart."""
    got = found(
        check_close, "output, with a mask,", np.array([[1.0, 2.5], [3.0, 4.0]]), np.array([[1.0, 2.0], [3, 4]]), 1e-3
    )
    assert (got.kind, got.got, got.want, got.at, got.bad, got.of) == (Kind.NUMBERS, 2.5, 2.0, (0, 1), 1, 4)
    assert (got.worst, got.allowed, got.tolerance, got.form) == (0.5, pytest.approx(4e-3), 1e-3, "float64")
    assert got.sizes() == {"d_model": 8, "causal": True}
    assert message(got) == "output[0, 1], with a mask, is 2.5, expected 2"
    assert details(got)[0] == (
        "1 of 4 entries differ, at most by 0.5, 125 times the tolerance (float64, relative tolerance 1e-03)"
    )
    assert details(got)[-1] == "with d_model = 8, causal = True"


def test_a_remainder_is_told_with_what_is_allowed():
    got = found(check_zero, "gradient", np.array([0.0, 0.25]), at_most=0.125)
    assert message(got) == "gradient[1] is 0.25, expected at most 0.125; 1 of 2 entries are too large"


def test_rows_that_are_not_finite_are_numbers():
    got = found(check_finite, "output", np.array([[np.nan, np.nan], [1.0, 2.0]]))
    assert got.rows == (0,)
    assert details(got)[0].startswith("only row 0 is not finite")


SENTENCES = {
    Kind.NUMBERS: "output[2] is 1.5, expected 2.5", Kind.FORMAT: "output is 1.5, expected 2.5",
    Kind.SHAPE: "output has shape (2,), expected (3,)",
    Kind.NOT_FINITE: "output[2] is 1.5, expected a finite number; 1 of 7 are not",
    Kind.NOT_ZERO: "output[2] is 1.5, expected at most 0.5; 1 of 7 entries are too large",
    Kind.UNCHANGED: "output is unchanged, expected a difference of more than 0.5",
    Kind.ACCEPTED: "output was accepted, expected an exception", Kind.UNTRUE: "output", Kind.NO_EFFECT: "output",
    Kind.RAISED: "it raised memory: too much", Kind.NO_ARRAY: "it did not return an array: too much",
    Kind.NOWHERE: "its weights are not where they were at first: too much",
    Kind.ENDED: "it tried to exit the process: too much", Kind.LOST: "it exceeded the memory limit: too much",
}  # fmt: skip


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_its_sentence(kind):
    """Would break if a new kind of finding ended a run in a KeyError, or two kinds were told alike."""
    extents = {"got": (2,), "want": (3,)} if kind is Kind.SHAPE else {"got": 1.5, "want": 2.5}
    got = Finding(
        kind, "output", at=(2,), allowed=0.5, worst=1.0, bad=1, of=7, error="memory", said="too much", **extents
    )
    assert message(got) == SENTENCES[kind]
    assert bool(details(got)) is (kind is Kind.NUMBERS)


@pytest.mark.parametrize(
    ("label", "at", "said"),
    [
        ("output, with a mask,", (0, 2), "output[0, 2], with a mask,"), ("output", (), "output"),
        ("output, in the second call", (1,), "output[1], in the second call,"),
        ("f(x, y)", (3,), "f(x, y)[3]"), ("rows [0, 1]", (3,), "rows [0, 1][3]"),
    ],
)  # fmt: skip
def test_an_entry_is_named_where_its_array_is(label, at, said):
    """Would break if the place were written behind the condition, or into the middle of a call."""
    assert message(Finding(Kind.NUMBERS, label, got=1.0, want=2.0, at=at)) == f"{said} is 1, expected 2"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bad": 2, "of": 8, "worst": 0.25, "allowed": 0.5, "tolerance": 1e-6},
         "2 of 8 entries differ, at most by 0.25, 0.5 times the tolerance (float32, relative tolerance 1e-06)"),
        ({"bad": 1, "of": 1, "worst": 0.25, "allowed": 0.125},
         "off by 0.25, 2 times the tolerance (float32, compared exactly)"),
        ({"bad": 3, "of": 4}, "3 of 4 entries differ, at most by inf (float32, compared exactly)"),
    ],
)  # fmt: skip
def test_how_many_numbers_are_off_and_how_far(changes, said):
    """Would break if a difference were measured in another tolerance than the one that is named."""
    assert details(Finding(Kind.NUMBERS, "output", got=1.0, want=2.0, form="float32", **changes)) == (said,)


def test_further_lines_come_after_the_numbers_and_before_the_setting():
    relation, rows = Relation(How.FACTOR, (0.5,)), tuple(range(6))
    got = Finding(Kind.NUMBERS, "output", got=1.0, want=2.0, bad=1, of=2, worst=1.0, form="float32", relation=relation,
                  notes=("a note",), rows=rows, setting=Setting.of("causal = True"))  # fmt: skip
    assert details(got) == (
        "only row 0, 1, 2, 3, 4, … is not finite: softmax returns NaN where every key of a row is masked",
        "1 of 2 entries differ, at most by 1 (float32, compared exactly)",
        "every entry is 0.5 times what it should be", "a note", "with causal = True",
    )  # fmt: skip
    assert details(replace(got, verbatim=True))[1:] == ("a note", "with causal = True")
    assert message(replace(got, verbatim=True)) == "output"


@pytest.mark.parametrize(
    ("got", "want", "swapped"), [((2, 3), (3, 2), True), ((2, 3), (2, 4), False), ("no array", (2,), False)]
)
def test_axes_in_another_order_are_told(got, want, swapped):
    found = Finding(Kind.SHAPE, "output", got=got, want=want)
    assert message(found).endswith(": the axes are in another order") is swapped


BEGINS = [
    (Threshold(Pattern.FROM, ("tokens",), first=9, last=8), "right up to T = 8, wrong from T = 9 on"),
    (Threshold(Pattern.FROM, ("tokens",), first=9, last=8, step=2),
     "right up to T = 8, wrong from T = 9 on, but not at multiples of 2"),
    (Threshold(Pattern.ALONE, ("d_model",), first=9, last=8, beyond=10), "wrong at d_model = 9, right at 8 and 10"),
    (Threshold(Pattern.SOMEWHERE, ("tokens", "keys"), "×", 9), "wrong at T × Tk = 9"),
    (Threshold(Pattern.MULTIPLES, ("batch",), first=9, step=3), "wrong where batch size is a multiple of 3, from 9 on"),
    (Threshold(Pattern.MULTIPLES, ("batch",), first=3, step=3), "wrong where batch size is a multiple of 3"),
    (Threshold(Pattern.ODD, ("prompt",), first=1, step=2), "wrong where length of the prompt is odd"),
    (Threshold(Pattern.ODD, ("prompt",), first=3, step=2), "wrong where length of the prompt is odd, from 3 on"),
    (Threshold(Pattern.SCATTERED, ("beams",), first=4), "wrong from number of beams = 4 on, but not at every size"),
    (Threshold(Pattern.SMALL, ("beams",), first=2, beyond=3), "wrong at number of beams = 2, right at 3"),
    (Threshold(Pattern.SMALL, ("beams",), first=2, beyond=9), "wrong at number of beams = 2 to 8, right at 9"),
    (Threshold(Pattern.LARGER, ("tokens", "keys")), "wrong where T is larger than Tk"),
    (Threshold(Pattern.LARGER, ("tokens", "keys"), ratio=2, more=-1), "wrong where T is larger than 2 × Tk - 1"),
    (Threshold(Pattern.EQUAL, ("tokens", "keys"), more=3), "wrong where T equals Tk + 3"),
    (Threshold(Pattern.THESE), "wrong at these sizes, right at others"),
    (Threshold(Pattern.SOMEWHERE, ("tokens",), first=9, further=Threshold(Pattern.SOMEWHERE, ("beams",), first=4)),
     "wrong at T = 9 and wrong at number of beams = 4"),
]  # fmt: skip


@pytest.mark.parametrize(("threshold", "said"), BEGINS)
def test_every_pattern_of_sizes_has_its_sentence(threshold, said):
    """Would break if the last right size were told as the first wrong one, or a new pattern ended in a KeyError."""
    assert begins(threshold) == said
    assert {one.pattern for one, _ in BEGINS} == set(Pattern)


def test_sizes_come_before_what_is_wrong_and_after_an_exception():
    threshold = Threshold(Pattern.FROM, ("tokens",), first=257, last=256)
    wrong = Finding(Kind.UNTRUE, "the text goes on", threshold=threshold)
    raised = Finding(Kind.RAISED, "", threshold=threshold, error="IndexError", said="index out of range")
    assert message(wrong) == "right up to T = 256, wrong from T = 257 on: the text goes on"
    assert message(raised) == "it raised IndexError: index out of range (right up to T = 256, wrong from T = 257 on)"


@pytest.mark.parametrize(
    ("phrase", "values"),
    [("d_model = 12, causal = False", {"d_model": 12, "causal": False}), ("an id that comes twice", {})],
    ids=["sizes", "words"],
)
def test_a_setting_in_words_keeps_its_sizes_by_name(phrase, values):
    setting = Setting.of(phrase)
    assert (str(setting), setting.values) == (phrase, values)
