"""A run at large sizes: the threshold, the ledger, limits, refusals, slowness, and what is wrong at small ones too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from conformkit.conformance import check
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.engine.results import Report, Result, Verdict

from .conftest import ATTENTION

Judged = Callable[..., tuple[Report, Result]]


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    """Return a function that judges attention with a line before its return, by SDPA-SIZES."""

    def judge(line: str = "", declared: str = "", **options: object) -> tuple[Report, Result]:
        code = ATTENTION.replace("    weights = np.exp", f"    {line or 'pass'}\n    weights = np.exp")
        (tmp_path / "attention_only.py").write_text(code, encoding="utf-8")
        (tmp_path / "conform.toml").write_text(declared, encoding="utf-8")
        report = check(tmp_path / "attention_only.py", only=("SDPA-SIZES",), diagnose=False, **options)
        return report, next(result for result in report.results if result.clause.id == "SDPA-SIZES")

    return judge


@pytest.mark.parametrize(
    ("line", "threshold"),
    [
        (
            "scores = scores[..., :] * (1.0 if k.shape[-2] <= 256 else 0.9)",
            "right up to Tk = 256, wrong from Tk = 257 on",
        ),
        ("scores = scores * (1.0 if q.shape[-2] < 100 else 0.9)", "right up to T = 99, wrong from T = 100 on"),
        ("scores = scores * (0.5 if q.shape[-1] == 64 else 1.0)", "wrong at d_k = 64, right at 63 and 65"),
        ("v = np.where(np.arange(v.shape[-1]) < 128, v, 0.0)", "right up to d_v = 128, wrong from d_v = 129 on"),
    ],
    ids=["keys", "queries", "width-of-keys", "width-of-values"],
)
@pytest.mark.parametrize("seed", [0, 2**31])
def test_the_message_begins_with_the_threshold(judged: Judged, line: str, threshold: str, seed: int) -> None:
    _, result = judged(line, seed=seed)
    assert (result.verdict, result.threshold) == (Verdict.FAIL, threshold)
    assert result.message.startswith(f"{threshold}: output")


def test_what_raises_from_some_size_on_is_an_error_with_its_threshold(judged: Judged) -> None:
    _, result = judged("scores = scores + np.zeros((1, 256))[:, :k.shape[-2]]")
    threshold = "right up to Tk = 256, wrong from Tk = 257 on"
    assert (result.verdict, result.threshold) == (Verdict.ERROR, threshold)
    assert threshold in result.message


def test_what_is_wrong_at_small_sizes_is_the_finding_of_another_clause(judged: Judged) -> None:
    _, result = judged("scores = scores * 2.0")
    assert (result.verdict, result.blocked_by) == (Verdict.BLOCKED, "SDPA-FORMULA")


def test_what_the_clause_about_small_sizes_does_not_meet_is_its_own_finding(judged: Judged) -> None:
    few = "k.shape[-2] < 12 or q.shape[-2] < 12 or q.shape[-1] < 9 or v.shape[-1] < 9"
    _, result = judged(f"scores = scores * (1.0 if {few} else 1.01)")
    assert (result.verdict, result.blocked_by) == (Verdict.FAIL, "")


def test_the_ledger_says_which_sizes_were_tried(judged: Judged) -> None:
    report, result = judged()
    assert result.verdict is Verdict.PASS
    extents = report.extents()["ScaledDotProductAttention"]
    assert extents["tokens"][1] > 512
    assert extents["keys"][1] > 512
    assert extents["d_k"][1] > 128
    assert extents["batch"][1] > 16
    assert extents["d_v"][0] < 10


def test_sizes_stay_within_declared_limits(judged: Judged) -> None:
    report, result = judged(declared="[limits]\ntokens = { max = 100 }\nbatch = { max = 20 }\n")
    assert result.verdict is Verdict.PASS
    extents = report.extents()["ScaledDotProductAttention"]
    assert max(extents["tokens"][1], extents["keys"][1]) <= 100
    assert extents["batch"][1] <= 20


def test_limits_that_leave_only_small_sizes_are_named(judged: Judged) -> None:
    limits = "[limits]\ntokens = { max = 9 }\nbatch = { max = 4 }\nd_k = { max = 8 }\nd_v = { max = 8 }\n"
    _, result = judged(declared=limits)
    assert result.verdict is Verdict.NOT_APPLICABLE
    assert "leave only small sizes: at most T = 9" in result.reason


def test_a_size_that_is_refused_by_name_is_no_failure(judged: Judged) -> None:
    refusal = "if k.shape[-2] > 200: raise ValueError('at most 200 keys')"
    report, result = judged(refusal)
    assert result.verdict is Verdict.PASS
    assert 64 < report.extents()["ScaledDotProductAttention"]["keys"][1] <= 200


def test_what_refuses_all_but_small_sizes_is_not_judged_by_large_ones(judged: Judged) -> None:
    _, result = judged("if max(*q.shape, *k.shape, *v.shape) > 13: raise ValueError('too large')")
    assert result.verdict is Verdict.NOT_APPLICABLE
    assert "leave only small sizes" in result.reason


def test_what_is_too_slow_for_large_sizes_gets_smaller_ones(judged: Judged) -> None:
    """A call that never ends for more than 300 keys times out; the rest is compared, and nothing is blocked."""
    slow = "while k.shape[-2] > 300: pass"
    report, result = judged(slow, limits=Limits(call_seconds=0.5))
    assert result.verdict is Verdict.PASS
    assert 64 < report.extents()["ScaledDotProductAttention"]["keys"][1] <= 300


def test_hidden_draws_show_no_threshold(judged: Judged) -> None:
    _, result = judged("scores = scores * (1.0 if k.shape[-2] <= 256 else 0.9)", hidden=True)
    assert result.verdict is Verdict.FAIL
    assert "256" not in result.message
    assert "257" not in result.message
