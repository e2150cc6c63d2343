"""Several profiles in one run: judged one after the other, reported as one."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from conformkit.conformance import runner
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.joining import joined
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.milestones import State, milestones
from conformkit.conformance.runner import run
from conformkit.spec.clauses import clause

BEGUN = Report("mypkg", "/mypkg", "torch", profile="lm", seed=7, complete=True)


def report(verdict: Verdict, *names: str, **changes: object) -> Report:
    return replace(BEGUN, results=[Result(clause(name), verdict) for name in names], **changes)


def test_one_red_profile_is_enough_and_nothing_is_counted_twice() -> None:
    good = report(Verdict.PASS, "SDPA-SCALE", "SDPA-FORMULA", notes=["float64 is not offered"], seconds=2.0)
    bad = report(Verdict.FAIL, "SDPA-FORMULA", "LM-ORACLE", notes=["float64 is not offered"], seconds=1.0)
    found = joined("milestone1,milestone5", [good, bad])
    assert [(r.clause.id, r.verdict) for r in found.results] == [
        ("SDPA-SCALE", Verdict.PASS), ("SDPA-FORMULA", Verdict.PASS), ("LM-ORACLE", Verdict.FAIL)
    ]  # fmt: skip
    assert not found.conforms
    assert (found.profile, list(found.notes), found.seconds) == (
        "milestone1,milestone5", ["float64 is not offered"], 3.0
    )  # fmt: skip


def test_what_one_profile_lacks_or_left_undone_is_not_lost() -> None:
    whole = report(Verdict.PASS, "SDPA-SCALE")
    lacking = report(Verdict.PASS, "LM-ORACLE", missing=["TinyTransformerLM"])
    stopped = report(Verdict.PASS, "LM-ORACLE", complete=False, late="the time limit of the run was reached")
    assert joined("core,paths", [lacking, whole]).missing == ["TinyTransformerLM"]
    assert not joined("core,paths", [lacking, whole]).conforms
    assert not joined("core,paths", [stopped, whole]).complete
    assert joined("core,paths", [stopped, whole]).late


def test_clauses_of_both_are_judged_and_a_profile_that_has_none_is_left_out(warm: LentFactory) -> None:
    def judged(*only: str) -> Report:
        request = RunRequest(impl="conformkit.reference", profile="lm,paths", only=only)
        return run(request, early=HeadStart(warm=warm))

    found = judged("SCHED-COSINE", "PATH-PAD-LEFT")
    assert {r.clause.id: r.verdict for r in found.results} == {
        "SCHED-COSINE": Verdict.PASS, "PATH-PAD-LEFT": Verdict.PASS
    }  # fmt: skip
    assert found.conforms
    assert found.profile == "lm,paths"
    assert [r.clause.id for r in judged("PATH-PAD-LEFT").results] == ["PATH-PAD-LEFT"]


def test_time_that_is_up_leaves_the_later_profile_not_run(warm: LentFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = iter(range(0, 360_000, 3600))
    monkeypatch.setattr(runner, "time", SimpleNamespace(perf_counter=lambda: float(next(hours))))
    request = RunRequest(
        impl="conformkit.reference", profile="lm,paths", only=("SCHED-COSINE", "PATH-PAD-LEFT"), seconds=5400.0
    )
    found = run(request, early=HeadStart(warm=warm))
    assert {r.clause.id: r.verdict for r in found.results} == {
        "SCHED-COSINE": Verdict.PASS, "PATH-PAD-LEFT": Verdict.NOT_RUN
    }  # fmt: skip
    assert found.late == "the time limit of the run, 5400 s, was reached; for more time, add --seconds 10800"
    assert {m.name: m.state for m in milestones(found)} == {"model": State.UNJUDGED, "training": State.DONE}
    assert not found.conforms
