"""What a run does on the reference is what benchmarks/budgets.toml says: neither more nor less, on any machine."""

import importlib.util
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

from conformkit.conformance.driver.client.session import Reply, Session

ROOT = Path(__file__).parents[2]


def script():
    spec = importlib.util.spec_from_file_location("budgets", ROOT / "benchmarks" / "budgets.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["budgets"] = module
    spec.loader.exec_module(module)
    return module


budgets = script()


def test_core_costs_what_its_budget_says():
    """Would break if a memo stopped hitting or something were built, called or sent once more than before."""
    assert budgets.differences(budgets.budgets()["core"], budgets.counted("core")) == []


@pytest.mark.full(guard="test_core_costs_what_its_budget_says", near=["benchmarks", "conformance", "reference", "spec"])
@pytest.mark.parametrize("profile", [name for name in budgets.PROFILES if name != "core"])
def test_each_profile_costs_what_its_budget_says(profile):
    """Would break if clauses of lm trained the same model once more: 124 requests where 59 were enough."""
    assert budgets.differences(budgets.budgets()[profile], budgets.counted(profile)) == []


def test_each_profile_has_a_budget():
    assert tuple(budgets.budgets()) == budgets.PROFILES


def test_more_and_less_than_the_budget_are_told():
    lines = budgets.differences({"calls": 7, "builds": 2, "processes": 1}, {"calls": 6, "builds": 2, "processes": 3})
    assert lines == ["  processes: 3, the budget is 1", "  calls: 6, the budget is 7"]


def test_only_how_long_something_is_trained_may_differ_a_little():
    """Would break if a budget held on one kind of processor only, or if one more lesson passed."""
    known = {"lessons": 4, "training updates": 1000, "calls": 100, "builds": 50}
    assert budgets.differences(known, {**known, "training updates": 1075, "calls": 103}) == []
    assert len(budgets.differences(known, {**known, "training updates": 1125})) == 1
    assert len(budgets.differences(known, {**known, "lessons": 5})) == 1
    assert len(budgets.differences(known, {**known, "builds": 51})) == 1
    assert len(budgets.differences({"calls": 100}, {"calls": 101})) == 1


def test_what_a_batch_contains_is_counted(monkeypatch):
    """Would break if clauses that send several requests at a time looked cheap."""
    answered = Reply({}, {"out": np.zeros(1000)})
    monkeypatch.setattr(Session, "request", lambda *_: answered)
    with budgets.counting() as count:
        inner = [{"op": "build"}, {"op": "call"}, {"op": "train", "rates": [0.1] * 25}, {"op": "release"}]
        Session.request(None, {"op": "batch", "requests": inner}, {"x": np.zeros(3)})
        Session.request(None, {"op": "vjp"})
    wanted = {"builds": 1, "calls": 1, "training updates": 25, "backward passes": 1}
    assert {name: count[name] for name in wanted} == wanted
    assert (count["round trips"], count["bytes"]) == (2, 8 * (3 + 1000 + 1000))


def test_what_was_counted_is_written_and_read_again():
    known = {"lm": {"calls": 2, "training updates": 3}, "core": {"calls": 1}}
    assert tomllib.loads(budgets.written(known)) == known
    assert budgets.written(known).index("[core]") < budgets.written(known).index("[lm]")


def test_a_run_that_fails_has_no_counts(monkeypatch):
    """Would break if a budget were written from a run that stopped half-way."""
    monkeypatch.setattr(budgets, "run", lambda _: type("Report", (), {"conforms": False}))
    with pytest.raises(RuntimeError, match="does not conform"):
        budgets.counted("core")
