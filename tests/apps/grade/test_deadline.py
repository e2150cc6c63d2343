"""When the time for a whole submission is up, further requests are refused, and existing verdicts stay."""

from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformkit.conformance import runner
from conformkit.conformance.apps.grade import assess as assessing
from conformkit.conformance.apps.grade.assess import GradingTask, assess
from conformkit.conformance.apps.grade.policy import Losses, RunLimits
from conformkit.conformance.apps.grade.submissions import find, pack
from conformkit.conformance.binding.config import Config
from conformkit.conformance.driver.client.interface import Limits, LoadReply, Reply
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.driver.location import Location
from conformkit.conformance.engine import deadline as deadlines
from conformkit.conformance.engine.deadline import Deadline
from conformkit.conformance.engine.finding import Located
from conformkit.conformance.engine.implementation import Implementation, OutOfTime
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.versions import kit_version
from conformkit.spec.clauses import clause

from .conftest import ATTENTION

THREE = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA")


@pytest.fixture
def policy(policy):
    """Policies in which each clause counts alike: what is lost is easily told."""

    def make(*text, **changes):
        made = policy(*text, **changes)
        return replace(made, groups=tuple(replace(group, credit="partial") for group in made.groups))

    return make


class FakeSession:
    """A worker that takes a fixed time for each request, by a fake clock."""

    lost = False
    note = ""

    def __init__(self, monkeypatch, takes=1.0, error=None, load=1.0):
        self.now, self.takes, self.error, self.asked = 100.0, takes, error, []
        self.load, self.waited = load, 0.0
        self.limits = Limits(call_seconds=20.0, load_seconds=120.0)
        monkeypatch.setattr("time.monotonic", lambda: self.now)
        monkeypatch.setattr(deadlines, "seconds_waited", lambda pid: 0.0)  # only the worker waits

    def start(self):
        self._take(self.limits.load_seconds)
        return LoadReply("numpy", "", "a", "")

    def request(self, header, tensors=None, seconds=None):
        self._take(seconds)
        exports = {name: {"found": False} for name in header.get("targets", ())}
        return Reply({"ok": True, "exports": exports})

    def _take(self, seconds):
        """Let a request take its time, and wait for a processor for the rest of what it takes on a busy machine."""
        self.asked.append(seconds)
        self.now += self.load * self.takes
        self.waited += (self.load - 1) * self.takes
        if self.error is not None:
            raise self.error


def implementation(session, deadline):
    made = Implementation(session, Config())
    made.deadline = Deadline(deadline)
    return made


def ask_until_the_end(asking):
    with suppress(OutOfTime):
        while True:
            asking.request({"op": "call"})


def test_a_request_may_take_what_is_left_and_no_longer_than_any(monkeypatch):
    session = FakeSession(monkeypatch, takes=15.0)
    asking = implementation(session, deadline=140.0)
    for _ in range(3):
        asking.request({"op": "call"})
    assert session.asked == [20.0, 20.0, 10.0]
    assert session.limits.load_seconds == 10.0
    with pytest.raises(OutOfTime):
        asking.request({"op": "call"})
    assert len(session.asked) == 3


def test_without_a_deadline_nothing_changes(monkeypatch):
    session = FakeSession(monkeypatch)
    implementation(session, deadline=None).request({"op": "call"})
    assert (session.asked, session.limits.load_seconds) == ([None], 120.0)


def test_a_worker_that_the_deadline_killed_did_not_time_out_itself(monkeypatch):
    lost = WorkerLost("timeout", "no answer after 5 s")
    with pytest.raises(OutOfTime):
        implementation(FakeSession(monkeypatch, 5.0, lost), deadline=105.0).request({"op": "call"})
    with pytest.raises(WorkerLost):
        implementation(FakeSession(monkeypatch, 5.0, lost), deadline=106.0).request({"op": "call"})


def test_whatever_imports_code_takes_no_longer_than_the_run_has(monkeypatch):
    # profile lm describes its tools besides: their modules are imported only then
    session = FakeSession(monkeypatch, takes=4.0)
    implementation(session, deadline=112.0).load(profile="lm")
    assert session.asked == [12.0, 8.0, 4.0]


@pytest.mark.parametrize("before", [0, 1, 2], ids=["start", "tools", "components"])
def test_an_import_that_the_deadline_ends_is_the_end_of_the_run(monkeypatch, before):
    session = FakeSession(monkeypatch, takes=4.0)
    ends, take = 100.0 + 4.0 * before + 2.0, session._take

    def late(seconds):
        take(seconds)
        if session.now >= ends:
            raise WorkerLost("timeout", "no answer")

    monkeypatch.setattr(session, "_take", late)
    with pytest.raises(OutOfTime):
        implementation(session, deadline=ends).load(profile="lm")
    assert len(session.asked) == before + 1


@pytest.mark.parametrize("load", [1.0, 1.5, 3.0, 4.0], ids=str)
def test_a_busy_machine_answers_as_many_requests_as_an_idle_one(monkeypatch, load):
    session = FakeSession(monkeypatch, load=load)
    asking = implementation(session, deadline=None)
    asking.deadline = Deadline.after(5.0, patient=True)
    ask_until_the_end(asking)
    assert len(session.asked) == 5


@pytest.mark.parametrize(("patient", "answered"), [(True, 2), (False, 1)], ids=["grading", "run"])
def test_waiting_moves_the_end_of_a_run_by_a_bounded_time_only(monkeypatch, patient, answered):
    # four times 5 s on the clock, whatever the worker does to look as if it waited
    session = FakeSession(monkeypatch, load=10.0)
    asking = implementation(session, deadline=None)
    asking.deadline = Deadline.after(5.0, patient=patient)
    ask_until_the_end(asking)
    assert len(session.asked) == answered


class LateJudge:
    """Judges the clauses of a list; then the time is up."""

    def __init__(self, *passes):
        self.passes = passes

    def __call__(self, *_, **__):
        return self

    def result(self, name):
        if name not in self.passes:
            raise OutOfTime
        return Result(clause(name), Verdict.PASS)


def loaded(monkeypatch, opened, judge):
    """Let a run judge, by this judge, what this opens instead of a worker."""

    @contextmanager
    def prepared(request, early=None):
        del early
        yield Located(Location("file", "a", Path(request.impl)), Config()), None

    monkeypatch.setattr(runner, "prepared", prepared)
    monkeypatch.setattr(runner, "opened", opened)
    monkeypatch.setattr(runner, "Judge", judge)


@pytest.fixture
def late_run(monkeypatch):
    """Let a run have time for the first of three clauses."""

    @contextmanager
    def opened(request, warm=None, *, located, components, repeated):
        del components
        fake = SimpleNamespace(
            framework="numpy", config=Config(), bounds=list, missing=list, stubs={}, sources={}, unusable={},
            replaced={}, loading_notes=(),
            tools=dict, session=SimpleNamespace(note=""), accuracy=lambda component: ("", 0.0),
        )  # fmt: skip
        yield fake, located.location

    loaded(monkeypatch, opened, LateJudge(THREE[0]))

    def run(request, **_):
        return runner.run(RunRequest(request.impl, only=THREE, isolation="none", seconds=9.0))

    return run


def test_clauses_that_are_left_are_not_run_and_say_why(late_run):
    report = late_run(RunRequest("a.py"))
    assert [(r.clause.id, r.verdict) for r in report.results] == [
        (THREE[0], "pass"), (THREE[1], "not run"), (THREE[2], "not run"),
    ]  # fmt: skip
    assert report.results[1].reason == "the time limit of the run, 9 s, was reached; for more time, add --seconds 18"
    assert not report.complete
    assert not report.conforms


class AskingJudge:
    """Passes each clause after one request."""

    def __init__(self, implementation, *_, **__):
        self._implementation = implementation

    def result(self, name):
        self._implementation.request({"op": "call"})
        return Result(clause(name), Verdict.PASS)


@pytest.mark.parametrize("load", [1.0, 2.0, 3.5], ids=str)
def test_a_submission_that_runs_out_of_time_gets_the_same_points_whatever_the_load(
    monkeypatch, submissions, policy, tmp_path, load
):
    session = FakeSession(monkeypatch, load=load)

    @contextmanager
    def opened(request, warm=None, *, located, components, repeated):
        del warm, components
        made = Implementation(session, Config())
        made.deadline = Deadline.after(request.seconds, patient=request.pause_deadline_when_busy)
        yield made, located.location

    loaded(monkeypatch, opened, AskingJudge)
    rules = policy(limits=RunLimits(seconds=2.0))
    package = pack(find(submissions(anna__py=ATTENTION)).found[0], rules.archive)
    (tmp_path / "scratch").mkdir()
    found = assess(GradingTask(package, rules, 3, kit_version()), tmp_path / "scratch", warm=None).grade
    verdicts = [(told["id"], told["verdict"]) for told in found.report["clauses"]]
    assert verdicts == [(THREE[0], "pass"), (THREE[1], "pass"), (THREE[2], "not run")]
    assert (found.outcome, found.points) == ("timeout", pytest.approx(20 / 3))
    assert found.report["clauses"][2]["reason"] == "the time limit of the run, 2 s, was reached"


@pytest.mark.parametrize(("deadline", "points"), [("partial", 10 / 3), ("zero", 0)])
def test_the_grade_says_so_and_what_passed_counts_as_the_policy_has_it(
    late_run, monkeypatch, submissions, policy, tmp_path, deadline, points
):
    monkeypatch.setattr(assessing, "run", late_run)
    rules = policy(losses=Losses(deadline=deadline))
    package = pack(find(submissions(anna__py=ATTENTION)).found[0], rules.archive)
    (tmp_path / "scratch").mkdir()
    found = assess(GradingTask(package, rules, 3, kit_version()), tmp_path / "scratch", warm=None).grade
    assert (found.outcome, found.points) == ("timeout", pytest.approx(points))
    assert found.message == "judging did not finish within 60 s"
    assert [c["verdict"] for c in found.report["clauses"]] == ["pass", "not run", "not run"]
