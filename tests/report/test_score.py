"""A report's score: mending never lowers it, and what is left out earns nothing."""

from __future__ import annotations

from itertools import product

import pytest

from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.report.score import RunOutcome, outcome, score, scores

from .samples import make_report, make_result

MHA = "MultiHeadAttention"
WAYS = (Verdict.PASS, Verdict.FAIL, Verdict.BLOCKED, Verdict.NOT_RUN)


def results(*verdicts: Verdict) -> list[Result]:
    """Return two results about attention, then two about heads."""
    about = ("ScaledDotProductAttention", "ScaledDotProductAttention", MHA, MHA)
    pairs = zip(about, verdicts, strict=True)
    return [make_result(v, f"X-{number}", component=name) for number, (name, v) in enumerate(pairs)]


def test_each_part_counts_the_same_however_many_clauses_are_about_it():
    attention = [make_result(Verdict.PASS, f"X-{number}") for number in range(9)]
    report = make_report(*attention, make_result(Verdict.FAIL, component=MHA))
    assert scores(report) == {"ScaledDotProductAttention": 1.0, MHA: 0.0}
    assert score(report) == 0.5


def test_mending_one_more_clause_never_lowers_a_score():
    for place, verdicts in product(range(4), product(WAYS, repeat=4)):
        mended = [*verdicts[:place], Verdict.PASS, *verdicts[place + 1 :]]
        assert score(make_report(*results(*mended))) >= score(make_report(*results(*verdicts))), verdicts


def test_what_is_missing_skipped_or_refused_earns_nothing():
    parts = results(Verdict.PASS, Verdict.PASS, Verdict.NOT_IMPLEMENTED, Verdict.NOT_IMPLEMENTED)
    for report in (make_report(*parts), make_report(*parts, missing=[MHA]), make_report(*parts, skipped=[MHA])):
        assert score(report) == 0.5


def test_a_part_that_its_profile_calls_optional_may_be_missing_and_not_left_out_by_a_declaration():
    parts = [make_result(), make_result(Verdict.NOT_IMPLEMENTED, "SA-SHAPE", component="SelfAttention")]
    assert score(make_report(*parts)) == 1.0
    assert score(make_report(*parts, skipped=["SelfAttention"])) == 0.5
    assert score(make_report(*parts, only=("SDPA", "SA"))) == 0.5


def test_what_a_declaration_took_away_has_not_passed_if_strict():
    taken = make_result(Verdict.NOT_APPLICABLE, "X-1", exempted_by="mask")
    narrowed = make_result(Verdict.PASS, "X-2", exempted_by="limits")
    assert score(make_report(make_result(), taken, narrowed)) == 1.0
    assert score(make_report(make_result(), taken, narrowed, strict=True)) == pytest.approx(1 / 3)


def test_nothing_that_was_judged_is_no_score():
    assert score(make_report()) == 0.0
    assert outcome(make_report(make_result(), complete=False)) is RunOutcome.INTERRUPTED
    assert outcome(make_report(make_result(Verdict.FAIL))) is RunOutcome.FAILS


@pytest.mark.parametrize(
    ("verdicts", "changes", "word"),
    [
        ((Verdict.PASS,), {}, "conforms"), ((Verdict.FAIL,), {}, "fails"), ((Verdict.ERROR,), {}, "fails"),
        ((Verdict.PASS,), {"missing": [MHA]}, "fails"),
        ((Verdict.PASS,), {"unusable": {MHA: Unusable("no")}}, "not judged"),
        ((Verdict.FAIL,), {"unusable": {MHA: Unusable("no")}}, "fails"), ((), {"complete": False}, "interrupted"),
        ((Verdict.PASS, Verdict.NOT_RUN), {"complete": False, "late": "time is up"}, "not judged"),
        ((Verdict.FAIL, Verdict.NOT_RUN), {"complete": False, "late": "time is up"}, "fails"),
        ((Verdict.PASS,), {"complete": False, "late": "time is up", "missing": [MHA]}, "fails"),
    ],
)  # fmt: skip
def test_a_run_is_said_in_one_word(verdicts, changes, word):
    """Would break if what could not be judged counted as wrong, or hid what is."""
    found = [make_result(verdict, f"X-{number}") for number, verdict in enumerate(verdicts)]
    assert outcome(make_report(*found, **changes)) == word


def test_a_run_that_judged_little_is_none_that_conforms():
    absent = [make_result(Verdict.NOT_IMPLEMENTED, f"X-{name}", component=name) for name in ("AdamW", "get_batch")]
    assert outcome(make_report(make_result(), *absent)) is RunOutcome.NOT_JUDGED
