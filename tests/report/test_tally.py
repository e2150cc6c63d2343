"""How far each part is, and what the run before this one found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.tally import Tally, last_time, remember, tally
from conformkit.spec.clauses import Level


@pytest.fixture
def judged(report, result):
    return report(
        result(Verdict.PASS, "SDPA-A"),
        result(Verdict.FAIL, "SDPA-B"),
        result(Verdict.NOT_APPLICABLE, "SDPA-C"),
        result(Verdict.FAIL, "SDPA-D", level=Level.SHOULD),
        result(Verdict.BLOCKED, "GRAD-A", component="all"),
    )


def test_what_does_not_apply_or_bind_is_not_counted(judged):
    assert tally(judged) == [Tally("ScaledDotProductAttention", 1, 2), Tally("whole-model clauses", 0, 1)]
    assert tally(replace(judged, level=Level.SHOULD))[0] == Tally("ScaledDotProductAttention", 1, 3)


def test_the_counts_come_back_for_the_same_code_and_question_only(judged, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert last_time(judged) == {}
    remember(judged)
    assert last_time(judged) == {"ScaledDotProductAttention": 1, "whole-model clauses": 0}
    assert last_time(replace(judged, seed=8)) == last_time(judged)
    assert last_time(replace(judged, only=("SDPA",))) == {}
    assert last_time(replace(judged, location="/home/other/mypkg")) == {}


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"ScaledDotProductAttention": "many"}'], ids=str)
def test_a_damaged_cache_is_an_empty_one(judged, tmp_path: Path, monkeypatch, text):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    remember(judged)
    next((tmp_path / "conformkit" / "passed").iterdir()).write_text(text, encoding="utf-8")
    assert last_time(judged) == {}


def test_a_cache_that_cannot_be_written_is_no_error(judged, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    remember(judged)
    assert last_time(judged) == {}
