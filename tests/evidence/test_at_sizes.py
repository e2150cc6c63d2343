"""Which sizes are tried: slow code is tried at smaller ones, and a busy machine changes nothing."""

import time
from types import SimpleNamespace

import pytest

from conformkit.conformance.assertions import checks as assertions
from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.engine import deadline
from conformkit.conformance.evidence.at_sizes import Pace, check_at_sizes
from conformkit.conformance.findings.words import begins

DOMAIN = {"tokens": (1, 600), "keys": (1, 600), "batch": (1, 64)}


class Clock:
    """Seconds that go by only when somebody says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def tried():
    """Return the sizes that are tried while each case takes some seconds by the clock."""

    def sizes(clock: Clock, each: float, seed: int = 0) -> list[dict[str, int]]:
        found = []

        def check(case) -> None:
            found.append(dict(case))
            clock.seconds += each

        draw = Draw(seed, "SDPA-SIZES", domain=DOMAIN, clock=clock)
        check_at_sizes(
            draw, check, lambda case: float(case["tokens"] * case["keys"] * case["batch"]), dict, after="SDPA-FORMULA"
        )
        return found

    return sizes


def test_what_is_slow_is_tried_at_smaller_sizes(tried):
    quick, slow = tried(Clock(), 0.1), tried(Clock(), 10.0)
    assert max(case["keys"] for case in quick) > 512
    assert sum(case["tokens"] * case["keys"] for case in slow) < 0.5 * sum(c["tokens"] * c["keys"] for c in quick)


def test_after_a_slow_case_others_cost_as_much_less_as_it_took_too_long() -> None:
    pace = Pace(slow=4.0)
    pace.took(4.0, 100.0)
    assert pace.allows(1e12)
    pace.took(5.0, 100.0)
    assert pace.allows(49.9)
    assert not pace.allows(50.0)
    pace.took(16.0, 100.0)
    assert pace.allows(24.9)
    assert not pace.allows(25.0)
    pace.took(5.0, 100.0)
    assert not pace.allows(25.0)


def _cost(case) -> float:
    return float(case["tokens"] * case["keys"] * case["batch"])


def _timing_out(clock: Clock, limit: float, seconds) -> tuple[list[dict[str, int]], list[dict[str, int]], str]:
    """Return the sizes that are compared, those that take longer than a call may, and what is told of them."""
    compared, lost = [], []

    def check(case) -> None:
        taken = seconds(case)
        clock.seconds += min(taken, limit)
        if taken > limit:
            lost.append(dict(case))
            raise WorkerLost("timeout", f"no answer after {limit:g} s")
        compared.append(dict(case))

    draw = Draw(0, "SDPA-SIZES", domain=DOMAIN, clock=clock)
    with assertions.gathering() as evidence:
        try:
            check_at_sizes(draw, check, _cost, dict, after="SDPA-FORMULA")
        except NotApplicable as why:
            return compared, lost, f"{why}"
    return compared, lost, evidence.remark


@pytest.mark.parametrize("limit", [0.5, 20.0])
def test_a_loop_that_never_ends_costs_three_time_limits(limit) -> None:
    """Would break if each case, and each smaller one in its place, took the whole time limit: 36 of them did."""
    compared, lost, told = _timing_out(Clock(), limit, lambda case: 1e9 if case["tokens"] > 2 else 0.001)
    assert len(lost) <= 3
    assert all(case["tokens"] <= 2 for case in compared)
    assert "took longer than a call may" in told or "too slow" in told


def test_right_code_that_is_slow_is_compared_at_the_sizes_that_it_manages() -> None:
    """Would break if a large case that takes too long kept smaller ones from being compared."""
    compared, lost, told = _timing_out(Clock(), 20.0, lambda case: _cost(case) / 5e4)
    assert 0 < len(lost) < 3
    assert len(compared) > 3
    assert max(case["keys"] for case in compared) > 64
    assert told == ""


def test_time_in_which_others_have_the_processor_changes_no_size(tried, monkeypatch):
    calm = tried(Clock(), 0.0)
    hours = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: 3600.0 * next(hours))
    assert tried(Clock(), 0.0) == calm


def test_the_clock_of_a_run_stands_still_while_it_waits_for_a_processor(monkeypatch):
    waited = {"thread-self": 2.0}
    monkeypatch.setattr(deadline, "seconds_waited", waited.__getitem__)
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    assert deadline.seconds_running(SimpleNamespace(waited=30.0)) == 68.0


def test_what_fails_by_chance_is_tried_with_other_draws_before_a_size_is_right() -> None:
    """Would break if the first size at which one draw happens to fail were named."""

    def check(case) -> None:
        fails = case["tokens"] > 256 and draw.at(case).integer(1, 3) > 1
        assertions.check("the text is wrong", not fails)

    draw = Draw(3, "SDPA-SIZES", domain=DOMAIN)
    with assertions.gathering() as evidence, pytest.raises(ClauseFailure):
        check_at_sizes(draw, check, lambda _: 0.0, dict, after="SDPA-FORMULA")
    assert begins(evidence.threshold) == "right up to T = 256, wrong from T = 257 on"
