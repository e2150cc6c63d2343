"""A part that a package does not export is judged inside the whole that it does export, and the verdict says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check, runner
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.wording import share, unjudged, verdict_line
from conformkit.spec.clauses import clauses, clauses_of

WHOLE = "from conformkit.reference import TinyTransformerLM\n"
FEW = ("LM-ORACLE", "LM-PARAM-COUNT", "LM-LOGITS-SHAPE")


@pytest.fixture
def unexplained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no causes of what is wrong: that takes all the time, and is about no part."""
    monkeypatch.setattr(runner, "_explain", lambda *_, **__: None)


def package(tmp_path: Path, source: str) -> Path:
    path = tmp_path / "exported_in_part.py"
    path.write_text(source, encoding="utf-8")
    return path


@pytest.mark.full(guard="test_a_part_that_is_asked_for_must_be_there")
def test_a_whole_conforms_without_exporting_its_parts(tmp_path: Path) -> None:
    report = check(package(tmp_path, WHOLE), diagnose=False)
    assert report.conforms
    assert share(report) == " in 1 of 7 parts"
    verdicts = {r.verdict for r in report.results if r.clause.component == "MultiHeadAttention"}
    assert verdicts == {Verdict.NOT_IMPLEMENTED}


@pytest.mark.usefixtures("unexplained")
def test_a_part_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    report = check(package(tmp_path, WHOLE), only=("MHA-SHAPE", *FEW), diagnose=False)
    assert report.missing == ["MultiHeadAttention"]
    assert not report.conforms


def test_a_part_without_a_name_of_its_own_may_be_written_inline(tmp_path: Path) -> None:
    report = check(package(tmp_path, WHOLE), only=("FFN-SHAPE", *FEW), diagnose=False)
    assert report.conforms
    why = "FeedForward is not seen on its own, only inside TinyTransformerLM"
    assert unjudged(report) == [(Verdict.NOT_IMPLEMENTED, why, ["FFN-SHAPE"])]
    assert verdict_line(report).endswith("; not seen on their own, written inline?: FeedForward")


def test_a_block_and_a_model_are_a_profile_of_their_own(tmp_path: Path) -> None:
    both = package(tmp_path, "from conformkit.reference import TinyTransformerLM, TransformerBlock\n")
    report = check(both, profile="model", only=("BLOCK-ORACLE", "BLOCK-CAUSAL", *FEW), diagnose=False)
    assert report.conforms
    assert share(report) == ""
    assert "not seen" not in verdict_line(report)


@pytest.mark.usefixtures("unexplained")
def test_in_that_profile_a_wrong_attention_inside_a_block_is_red(tmp_path: Path) -> None:
    wrong = """
from conformkit.reference import TransformerBlock as Right

class TransformerBlock(Right):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, d_ff, dropout, causal=False)
"""
    report = check(package(tmp_path, wrong), profile="model", only=("BLOCK-ORACLE", "BLOCK-CAUSAL"), diagnose=False)
    assert not report.conforms
    assert "BLOCK-CAUSAL" in {r.clause.id for r in report.failures()}


@pytest.mark.usefixtures("unexplained")
def test_a_whole_that_is_wrong_judges_no_part(tmp_path: Path) -> None:
    wrong = (
        WHOLE
        + """
class TinyTransformerLM(TinyTransformerLM):
    def forward(self, ids):
        return super().forward(ids) * 1.5
"""
    )
    about = {"TinyTransformerLM", "ScaledDotProductAttention", "MultiHeadAttention", "TransformerBlock"}
    few = {*FEW, "SDPA-OUT-SHAPE", "MHA-SHAPE", "BLOCK-SHAPE"}
    assert {clauses()[name].component for name in few} == about
    report = check(package(tmp_path, wrong), diagnose=False, without=tuple(set(clauses_of("core")) - few))
    assert {"ScaledDotProductAttention", "MultiHeadAttention", "TransformerBlock"} <= set(report.missing)
