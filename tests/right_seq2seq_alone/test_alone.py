"""Half of an encoder-decoder is judged by the clauses about that half."""

from __future__ import annotations

from pathlib import Path

from conformkit.conformance import check
from conformkit.conformance.engine.results import Verdict

HERE = Path(__file__).parent


def test_an_encoder_alone_conforms_to_the_clauses_on_encoders():
    report = check(str(HERE / "encoder"), profile="seq2seq", only=["ENC", "MLM"])
    assert report.conforms, report.failures()
    assert sum(result.verdict is Verdict.PASS for result in report.results) > 25


def test_a_decoder_alone_is_a_language_model_of_core():
    report = check(str(HERE / "decoder"), only=["BLOCK", "LM"])
    assert report.conforms, report.failures()
    assert sum(result.verdict is Verdict.PASS for result in report.results) > 40


def test_a_layer_without_memory_is_not_a_decoder_layer():
    # regression: it was called with the memory as its mask, and failed
    report = check(str(HERE / "decoder"), profile="seq2seq", only=["DEC-SHAPE"])
    (result,) = report.results
    assert result.verdict is Verdict.NOT_IMPLEMENTED
