"""From clauses to verdicts: each verdict has its cause, and no problem is reported as a pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable, check, check_close
from conformkit.conformance.driver.errors import ImplementationFailure, ProtocolError, StartError, WorkerLost
from conformkit.conformance.engine.implementation import OutOfTime
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.engine.silence import GivenUp
from conformkit.conformance.findings.outline import LATE, SENSELESS
from conformkit.conformance.subject.attention import Attend

from .conftest import make_clause

Judging = Callable[..., Judge]


def holds() -> None:
    check("never said", holds=True)


def fails() -> None:
    raise ClauseFailure("the sky is green", "worst by 3")


def test_a_clause_whose_checks_hold_passes_with_its_distance(judging: Judging) -> None:
    def test(attend: Attend, draw: Any) -> None:
        q, k, v = draw.values(3, 4), draw.values(5, 4), draw.values(5, 7)
        check_close("output", attend(q, k, v), attend.instance.expected(q, k, v), attend.tolerance())

    result = judging((make_clause("A-ONE"), test)).result("A-ONE")
    assert result.verdict is Verdict.PASS
    assert result.distance is not None
    assert 0.0 <= result.distance < 1.0


def test_a_failure_keeps_its_sentence_and_its_numbers(judging: Judging) -> None:
    result = judging((make_clause("A-ONE"), fails)).result("A-ONE")
    assert (result.verdict, result.message, result.details) == (Verdict.FAIL, "the sky is green", ("worst by 3",))


def test_what_needs_a_failed_clause_is_blocked_by_the_root_cause(judging: Judging) -> None:
    judge = judging(
        (make_clause("A-ONE"), fails),
        (make_clause("A-TWO", needs=("A-ONE",)), holds),
        (make_clause("A-THREE", needs=("A-TWO",)), holds),
    )
    result = judge.result("A-THREE")
    assert result.verdict is Verdict.BLOCKED
    assert result.blocked_by == "A-ONE"


def test_alone_a_clause_is_judged_whatever_it_needs(judging: Judging) -> None:
    judge = judging((make_clause("A-ONE"), fails), (make_clause("A-TWO", needs=("A-ONE",)), fails))
    assert judge.alone("A-TWO").verdict is Verdict.FAIL
    assert judge.result("A-TWO").verdict is Verdict.BLOCKED


def test_a_need_that_does_not_apply_blocks_nothing(judging: Judging) -> None:
    judge = judging(
        (make_clause("A-ONE", applies={"gradients": "yes"}), fails), (make_clause("A-TWO", needs=("A-ONE",)), holds)
    )
    assert judge.result("A-ONE").verdict is Verdict.NOT_APPLICABLE
    assert judge.result("A-TWO").verdict is Verdict.PASS


def test_a_clause_about_another_variant_is_not_applicable_and_says_why(judging: Judging) -> None:
    judge = judging((make_clause("A-ONE", applies={"placement": "post | parallel"}), fails))
    result = judge.result("A-ONE")
    assert (result.verdict, result.reason) == (Verdict.NOT_APPLICABLE, "placement is pre")


def test_a_component_that_is_not_exported_is_not_implemented(judging: Judging) -> None:
    result = judging((make_clause("A-ONE", component="FeedForward"), holds)).result("A-ONE")
    assert result.verdict is Verdict.NOT_IMPLEMENTED
    assert "FeedForward is not exported" in result.reason


def test_a_clause_without_a_test_is_not_run(judging: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    judge = judging((make_clause("A-ONE"), holds))
    judge._tests = {}
    assert judge.result("A-ONE").verdict is Verdict.NOT_RUN


def test_a_test_that_checks_nothing_is_no_pass_and_ends_nothing(judging: Judging) -> None:
    # constants and ignored parameters can leave a test nothing to look at, and it was then content
    judge = judging((make_clause("A-ONE"), lambda: None), (make_clause("A-TWO"), holds))
    result = judge.result("A-ONE")
    assert (result.verdict, "nothing to check" in result.reason) == (Verdict.NOT_RUN, True)
    assert judge.result("A-TWO").verdict is Verdict.PASS


def test_after_several_timeouts_the_other_clauses_of_a_component_are_not_tried(judging: Judging) -> None:
    # three hostile packages held up a run for over 150 s, 20 s a clause
    tried = []

    def hangs() -> None:
        tried.append(1)
        raise WorkerLost("timeout", "no answer in 20 s")

    names = [f"A-{number}" for number in range(6)]
    judge = judging(*((make_clause(name), hangs) for name in names), (make_clause("B-ONE", component="all"), holds))
    verdicts = [judge.result(name).verdict for name in names]
    assert verdicts == [Verdict.TIMEOUT] * 3 + [Verdict.NOT_RUN] * 3
    assert len(tried) == 3
    assert "timed out before" in judge.result(names[-1]).reason
    assert judge.result("B-ONE").verdict is Verdict.PASS


def test_what_is_given_up_is_not_run_and_says_why(judging: Judging) -> None:
    """Would break if each clause that is spared a time limit were one more failure."""

    def given_up() -> None:
        raise GivenUp(3)

    result = judging((make_clause("A-ONE"), given_up)).result("A-ONE")
    assert (result.verdict, result.outline) == (Verdict.NOT_RUN, LATE)
    assert result.reason == "it gave no answer to 3 calls, each as long as the limit, and is not called again"


@pytest.mark.parametrize(
    "error",
    [
        TypeError("not iterable"),
        ValueError("zip"),
        KeyError("x"),
        OverflowError("int"),
        ProtocolError("a header of"),
        AssertionError("an oracle's own"),
        EOFError("nothing there"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_unforeseen_reply_costs_its_clause_and_not_the_run(judging: Judging, error: Exception) -> None:
    def stumbles() -> None:
        check("never said", holds=True)
        raise error

    judge = judging((make_clause("A-ONE"), stumbles), (make_clause("A-TWO"), holds))
    result = judge.result("A-ONE")
    assert result.verdict is Verdict.NOT_RUN
    assert type(error).__name__ in result.reason
    assert "test_judge.py" in result.reason
    assert result.outline == SENSELESS
    assert judge.result("A-TWO").verdict is Verdict.PASS


@pytest.mark.parametrize("error", [StartError("no fork"), OutOfTime()], ids=lambda error: type(error).__name__)
def test_the_end_of_a_run_is_not_a_verdict(judging: Judging, error: Exception) -> None:
    def ends() -> None:
        raise error

    with pytest.raises(type(error)):
        judging((make_clause("A-ONE"), ends)).result("A-ONE")


@pytest.mark.parametrize(
    ("error", "verdict", "words"),
    [
        (ImplementationFailure("exception", "ValueError", "bad", "m.py:3"), Verdict.ERROR, "it raised ValueError: bad"),
        (ImplementationFailure("output", "TypeError", "a generator"), Verdict.ERROR, "did not return an array"),
        (ImplementationFailure("memory", "MemoryError", "9 GiB"), Verdict.CRASH, "memory limit"),
        (ImplementationFailure("exit", "SystemExit", "0"), Verdict.CRASH, "exit the process"),
        (ImplementationFailure("unsupported", "unsupported", "no autograd"), Verdict.ERROR, "it raised unsupported"),
        (WorkerLost("timeout", "no answer in 20 s"), Verdict.TIMEOUT, "exceeded the time limit"),
        (WorkerLost("signal", "killed by SIGSEGV"), Verdict.CRASH, "crashed: killed by SIGSEGV"),
        (WorkerLost("exit", "status 0"), Verdict.CRASH, "ended its process"),
        (WorkerLost("memory", "more than 4 GiB"), Verdict.CRASH, "exceeded the memory limit"),
        (WorkerLost("output", "more than 8 MiB"), Verdict.CRASH, "limit on output"),
        (NotApplicable("nothing to see"), Verdict.NOT_APPLICABLE, ""),
    ],
    ids=lambda value: getattr(value, "kind", None) or str(value).replace(" ", "-")[:30],
)
def test_kinds_of_failures_are_distinguished(judging: Judging, error: Exception, verdict: Verdict, words: str) -> None:
    def test() -> None:
        raise error

    result = judging((make_clause("A-ONE"), test)).result("A-ONE")
    assert result.verdict is verdict
    assert words in result.message


def test_the_line_at_fault_is_kept(judging: Judging) -> None:
    def test() -> None:
        raise ImplementationFailure("exception", "ValueError", "bad", "m.py:3 in forward")

    assert judging((make_clause("A-ONE"), test)).result("A-ONE").where == "m.py:3 in forward"


def test_a_clause_is_judged_once(judging: Judging) -> None:
    calls = []

    def test() -> None:
        calls.append(1)
        check("never said", holds=True)

    judge = judging((make_clause("A-ONE"), test), (make_clause("A-TWO", needs=("A-ONE",)), holds))
    judge.result("A-ONE")
    judge.result("A-TWO")
    judge.result("A-ONE")
    assert len(calls) == 1


def test_a_mistake_of_the_kit_is_not_a_verdict(judging: Judging) -> None:
    def test() -> None:
        raise ZeroDivisionError

    result = judging((make_clause("A-ONE"), test)).result("A-ONE")
    assert result.verdict is not Verdict.PASS
    assert not result.verdict.red


def test_what_a_clause_has_built_does_not_stay_in_the_worker(judging: Judging) -> None:
    # masks of 1024 × 1024, one in each of several hundred models, exhausted the memory during the run
    built = []

    def builds(attend: Attend) -> None:
        built.extend(attend.subject.build() for _ in range(40))
        check("they are there", holds=bool(built[0].read_raw() is not None))

    judge = judging((make_clause("A-ONE"), builds))
    assert judge.result("A-ONE").verdict is Verdict.PASS
    with pytest.raises(ImplementationFailure, match="no component with handle"):
        built[0].read_raw()
