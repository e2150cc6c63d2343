"""A finding is put into words in one place, and from its fields alone."""

from __future__ import annotations

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


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_words(kind):
    """Would break if a new kind of finding had no sentence, so that a run ended in a KeyError."""
    got = Finding(kind, "output", got=(2,) if kind is Kind.SHAPE else 1.5, want=(3,) if kind is Kind.SHAPE else 2.5,
                  allowed=0.5, worst=1.0, bad=1, of=2, error="timeout", said="too slow")  # fmt: skip
    assert message(got)


@pytest.mark.parametrize("pattern", list(Pattern))
def test_every_pattern_of_sizes_has_words(pattern):
    got = Threshold(pattern, ("tokens", "keys"), "×", 9, 8, 10, 2)
    assert begins(got)


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
