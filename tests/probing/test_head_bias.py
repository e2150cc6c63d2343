"""A head with or without a bias: either is right unless one is declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report
from conformkit.conformance.runner import run
from conformkit.spec.variants import Variant

NO_BIAS = Variant(head_bias=False)
GPT2 = Variant(qkv_bias=True, output_bias=True, positions="learned", tied=True, head_bias=False)


def judged(folder: Path, toml: str, warm: LentFactory, *, profile: str = "core") -> Report:
    (folder / "conform.toml").write_text(toml)
    only = ("LM-PARAM-COUNT", "LM-ORACLE") if profile == "core" else ("S2S-PARAM-COUNT",)
    return run(RunRequest(impl=str(folder), only=only, profile=profile), trusted=lambda: warm)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
def test_either_conforms_and_the_unusual_one_is_noted(bias: bool, warm: LentFactory, tmp_path: Path) -> None:
    report = judged(write_reference(tmp_path / "m", variant=Variant(head_bias=bias)), "", warm)
    assert report.conforms
    assert not report.undeclared
    notes = [note for note in report.notes if "head_bias" in note]
    assert bool(notes) is not bias
    assert all("`head_bias = false` under [variant]" in note for note in notes)


@pytest.mark.full(guard="test_a_bias_where_none_is_declared_is_still_a_mistake")
def test_a_declared_bias_that_is_missing_is_still_a_mistake(warm: LentFactory, tmp_path: Path) -> None:
    report = judged(write_reference(tmp_path / "m", variant=NO_BIAS), "[variant]\nhead_bias = true\n", warm)
    assert not report.conforms
    assert [found.line for found in report.undeclared] == ["head_bias = false"]


def test_a_bias_where_none_is_declared_is_still_a_mistake(warm: LentFactory, tmp_path: Path) -> None:
    assert not judged(write_reference(tmp_path / "m"), "[variant]\nhead_bias = false\n", warm).conforms


def test_an_encoder_decoder_may_have_either(warm: LentFactory, tmp_path: Path) -> None:
    assert judged(write_reference(tmp_path / "m", variant=NO_BIAS), "", warm, profile="seq2seq").conforms


def test_it_is_seen_beside_other_choices(warm: LentFactory, tmp_path: Path) -> None:
    folder = write_reference(tmp_path / "m", variant=GPT2)
    (folder / "conform.toml").write_text("")
    with opened(RunRequest(impl=str(folder)), warm) as (implementation, _):
        assert implementation.subject("TinyTransformerLM").variant == Variant(head_bias=False)
