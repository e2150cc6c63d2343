"""Builds and writes that travel with the next request: the same answers, and nothing goes unnoticed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.engine import judge as judge_module
from conformkit.conformance.engine.deferring import Deferring, OutOfStep
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.suite import registry
from conformkit.spec.arrays import Array

from .conftest import make_clause

MODULE = """
import math
import numpy as np

BUILT = []


class FeedForward:
    def __init__(self, d_model, d_ff):
        BUILT.append(d_model)
        {first}
        random = np.random.default_rng(0)
        self.up, self.up_bias = random.normal(size=(d_ff, d_model)), np.zeros(d_ff)
        self.down, self.down_bias = random.normal(size=(d_model, d_ff)), np.zeros(d_model)

    def __call__(self, x):
        hidden = x @ self.up.T + self.up_bias
        return hidden * 0.5 * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2))) @ self.down.T + self.down_bias
"""
BUILD = {
    "op": "build",
    "path": "ffn_only:FeedForward",
    "args": [{"value": 4}, {"value": 8}],
    "kwargs": {},
    "dtype": "float64",
}


def module(folder: Path, first: str = "pass") -> Path:
    path = folder / "ffn_only.py"
    path.write_text(MODULE.format(first=first), encoding="utf-8")
    return path


def trips(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """Return a list to which each request that is sent from now on is added."""
    sent: list[Mapping[str, Any]] = []
    ask = Session.request

    def request(self: Session, header: Mapping[str, Any], *arguments: Any, **named: Any) -> Reply:
        sent.append(header)
        return ask(self, header, *arguments, **named)

    monkeypatch.setattr(Session, "request", request)
    return sent


class Scripted:
    """A driver whose builds give the parameters that it was made with, one list after the other."""

    lost = False
    limits = type("Limits", (), {"call_seconds": 20.0})

    def __init__(self, *listings: list[str]) -> None:
        self.listings, self.sent = list(listings), list[tuple[Mapping[str, Any], Mapping[str, Array]]]()

    def request(self, header: Mapping[str, Any], arrays: Mapping[str, Array], seconds: float | None = None) -> Reply:
        del seconds
        self.sent.append((header, arrays))
        if header["op"] != "build":
            return Reply({"ok": True}, {"out": np.ones(1)})
        found = {"handle": header.get("as", 7), "parameters": self.listings.pop(0)}
        return Reply({"ok": True, "lazy": False, "dtype_refused": None, **found})

    def batch(self, requests: list[Any], seconds: float | None = None) -> list[Reply]:
        return [self.request(*one, seconds) for one in requests]


def twice(driver: Any, deferring: Deferring) -> Reply:
    """Build twice, write, and call; return the answer to the second build."""
    with deferring.allowed(driver):
        for _ in range(2):
            built = deferring.answer(driver, BUILD, {}) or deferring.send(driver, BUILD, {}, None)
        weights = np.ones(4)
        write = {"op": "write", "handle": built.header["handle"]}
        assert deferring.answer(driver, write, {"weight": weights}) is not None
        weights[:] = 0.0
        assert len(driver.sent) == 1
        deferring.send(driver, {"op": "call", "handle": built.header["handle"]}, {}, None)
    return built


def test_a_second_build_and_a_write_wait_for_the_call_and_keep_their_order() -> None:
    driver = Scripted(["weight"], ["weight"])
    built = twice(driver, Deferring())
    assert built.header["parameters"] == ["weight"]
    assert [header["op"] for header, _ in driver.sent] == ["build", "build", "write", "call"]
    assert {header["handle"] for header, _ in driver.sent[2:]} == {built.header["handle"]}


def test_what_waits_is_sent_as_it_was_when_it_was_asked() -> None:
    """Would break if a test that changes its arrays in place wrote other weights than it had asked to."""
    driver = Scripted(["weight"], ["weight"])
    twice(driver, Deferring())
    assert driver.sent[2][1]["weight"].tolist() == [1.0] * 4


def test_an_object_with_other_parameters_than_before_is_a_surprise_and_ends_waiting() -> None:
    driver, deferring = Scripted(["weight"], ["weight", "bias"]), Deferring()
    with pytest.raises(OutOfStep):
        twice(driver, deferring)
    with deferring.allowed(driver):  # type: ignore[arg-type]
        assert deferring.answer(driver, BUILD, {}) is None  # type: ignore[arg-type]


class Cramped(Scripted):
    """A driver whose replies to several requests are too big together."""

    def batch(self, requests: list[Any], seconds: float | None = None) -> list[Reply]:
        del requests, seconds
        raise ImplementationFailure("output", "output", "the reply is too big")


def test_a_reply_that_is_too_big_for_one_trip_is_no_failure_of_the_code() -> None:
    """Catches an error for code whose results fit into a reply of their own, and not beside those of a build."""
    with pytest.raises(OutOfStep):
        twice(Cramped(["weight"]), Deferring())


def test_nothing_waits_beyond_the_end_of_a_test() -> None:
    """Would break if a build that fails went unnoticed, because its clause calls nothing afterwards."""
    driver, deferring = Scripted(["weight"], ["weight", "bias"]), Deferring()

    def build_and_no_more() -> None:
        with deferring.allowed(driver):  # type: ignore[arg-type]
            deferring.send(driver, BUILD, {}, None)  # type: ignore[arg-type]
            assert deferring.answer(driver, BUILD, {}) is not None  # type: ignore[arg-type]

    with pytest.raises(OutOfStep):
        build_and_no_more()
    assert [header["op"] for header, _ in driver.sent] == ["build", "build"]


def test_a_large_write_does_not_wait() -> None:
    driver, deferring = Scripted(), Deferring()
    with deferring.allowed(driver):  # type: ignore[arg-type]
        assert deferring.answer(driver, {"op": "write", "handle": 1}, {"w": np.zeros(1 << 18)}) is None  # type: ignore[arg-type]


def judged(path: Path, clause_ids: list[str]) -> dict[str, Any]:
    with opened(RunRequest(impl=str(path))) as (implementation, _):
        judge = Judge(implementation, registry.tests("core"))
        return {one: judge.result(one) for one in clause_ids}


CLAUSES = ["FFN-POSITIONWISE", "FFN-NO-RESIDUAL", "FFN-ORACLE"]


def test_clauses_pass_as_before_in_fewer_trips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sent = module(tmp_path), trips(monkeypatch)
    found = judged(path, CLAUSES)
    assert {result.verdict for result in found.values()} == {Verdict.PASS}
    assert any(header["op"] == "batch" and header["requests"][-1]["op"] == "call" for header in sent)


def judged_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_then_on: str) -> tuple[Result, list[list[str]]]:
    """Judge a test that builds two objects, between which the constructor changes; return what it saw of the second."""
    flag, seen = tmp_path / "changed", list[list[str]]()
    path = module(tmp_path, f"if __import__('os').path.exists({str(flag)!r}): {from_then_on}")
    clause = make_clause("A-ONE", component="FeedForward")
    monkeypatch.setattr(judge_module, "find", {"A-ONE": clause}.__getitem__)
    with opened(RunRequest(impl=str(path))) as (implementation, _):

        def test(draw: Draw) -> None:
            subject = implementation.subject("FeedForward")
            subject.build(d_model=4, d_ff=8)
            flag.touch()
            instance = subject.build(d_model=4, d_ff=8)
            seen.append([item["name"] for item in instance.listing])
            check_shape("output", instance(draw.values(2, 4)), (2, 4))

        return Judge(implementation, {"A-ONE": test}).result("A-ONE"), seen


def test_a_constructor_that_fails_at_last_is_told_by_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would break if an error that comes with a later request were told as one about that request."""
    result, _ = judged_twice(tmp_path, monkeypatch, "raise ValueError('no more of them')")
    assert (result.verdict, result.message) == (Verdict.ERROR, "it raised ValueError: no more of them")


def test_parameters_that_come_later_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would break if what was listed once were believed for good."""
    result, seen = judged_twice(tmp_path, monkeypatch, "self.further = np.ones(1)")
    assert result.verdict is Verdict.PASS
    assert ["further" in names for names in seen] == [False, True]
