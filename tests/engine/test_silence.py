"""What gives no answer costs three time limits, however many stages of a run ask it; what is slow is asked on."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.silence import PATIENCE, GivenUp, NeverAnswers, Silence, asked_of
from conformkit.conformance.runner import run

CALL = {"op": "call", "handle": 4}
LATE = WorkerLost("timeout", "no answer after 20 s")
ENDLESS = """
class MultiHeadAttention:
    def __init__(self, d_model, num_heads):
        self.heads = num_heads

    def __call__(self, x):
        while True:
            pass
"""


def tired(times: int = PATIENCE) -> Silence:
    silence = Silence()
    for _ in range(times):
        silence.lost(("m:Model", "call"), LATE)
    return silence


def test_what_never_answered_is_not_asked_a_fourth_time():
    with pytest.raises(NeverAnswers, match="not called again") as lost:
        tired().check(("m:Model", "call"))
    assert lost.value.kind == "timeout"


@pytest.mark.parametrize("asked", [("m:Model", "generate"), ("m:Model", "vjp"), ("m:Block", "call"), None])
def test_other_calls_are_asked_all_the_same(asked):
    """Would break if an endless `generate` kept a model's logits from being judged."""
    tired().check(asked)


def test_fewer_calls_without_an_answer_say_nothing():
    tired(PATIENCE - 1).check(("m:Model", "call"))


def test_what_has_answered_is_slow_and_not_endless():
    """Would break if right code that is too slow for long texts were not asked for short ones any more."""
    silence = Silence()
    silence.heard(("m:Model", "call"))
    for _ in range(2 * PATIENCE):
        silence.lost(("m:Model", "call"), LATE)
    silence.check(("m:Model", "call"))


def test_what_answers_at_times_is_given_up_once_a_clause_has_told_of_it():
    """Would break if an endless loop for long rows cost a time limit in each clause: 25 of them, for three red ones."""
    silence = tired()
    silence.heard(("m:Model", "call"))
    silence.told(("m:Model", "call"))
    with pytest.raises(
        GivenUp, match="no answer to 3 calls, each as long as the limit, and is not called again"
    ) as lost:
        silence.check(("m:Model", "call"))
    assert lost.value.kind == "timeout"
    silence.check(("m:Model", "generate"))


@pytest.mark.parametrize(
    ("answered", "told", "asked_again"),
    [
        pytest.param(False, False, False, id="never answered"),
        pytest.param(True, True, False, id="a clause told of it"),
        pytest.param(True, False, True, id="slow"),
    ],
)
def test_beside_what_is_hopeless_one_call_without_an_answer_is_enough(answered: bool, told: bool, asked_again: bool):
    """Would break if blocks of an endless attention cost three time limits as well, or slow ones were given up."""
    silence, block = tired(), ("m:Block", "call")
    silence.check(block)
    silence.lost(block, LATE)
    if answered:
        silence.heard(block)
    if told:
        silence.told(block)
    if asked_again:
        silence.check(block)
    else:
        with pytest.raises(WorkerLost, match="no answer to a call as long as the limit"):
            silence.check(block)


def test_a_crash_is_no_silence():
    silence = Silence()
    for _ in range(2 * PATIENCE):
        silence.lost(("m:Model", "call"), WorkerLost("signal", "killed by SIGSEGV"))
    silence.check(("m:Model", "call"))


def test_a_request_is_about_a_path_and_a_method():
    paths = {4: "m:Model"}
    assert asked_of(paths, CALL) == asked_of(paths, {"op": "trace", "handle": 4}) == ("m:Model", "call")
    assert asked_of(paths, {**CALL, "method": "generate"}) == ("m:Model", "generate")
    assert asked_of({}, {"op": "build", "path": "m:Model"}) == ("m:Model", "build")
    assert asked_of(paths, {"op": "read", "handle": 4}) is asked_of(paths, {"op": "call", "handle": 7}) is None


def test_an_endless_candidate_costs_three_time_limits_from_first_look_to_report(tmp_path: Path, monkeypatch):
    """Would break if discovery, probe, clauses or diagnosis counted by themselves: seven, for one reported time-out."""
    lost: list[str] = []
    ask = Session.request

    def request(self, *arguments, **named):
        try:
            return ask(self, *arguments, **named)
        except WorkerLost as error:
            lost.append(error.kind)
            raise

    monkeypatch.setattr(Session, "request", request)
    (tmp_path / "endless.py").write_text(ENDLESS, encoding="utf-8")
    limits = Limits(call_seconds=0.3)
    asked = RunRequest(impl=str(tmp_path / "endless.py"), limits=limits, only=("MHA",), discover=True)
    assert not run(asked).conforms
    assert lost == ["timeout"] * PATIENCE


def test_what_a_file_holds_is_looked_for_no_longer_than_a_run_may_take(tmp_path: Path):
    """Would break if many candidates that sleep in each call were tried for ever before the run begins."""
    (tmp_path / "endless.py").write_text(ENDLESS.replace("MultiHeadAttention", "MyAttention"), encoding="utf-8")
    asked = RunRequest(impl=str(tmp_path / "endless.py"), only=("MHA",), discover=True, seconds=2.0)
    with pytest.raises(LoadFailure, match="within 2 s") as failure:
        run(asked)
    assert failure.value.late
