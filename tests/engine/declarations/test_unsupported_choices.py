"""Choices that a definition would ignore are refused: a declaration that does nothing hides what is not judged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.engine.declarations.unsupported_choices import refuse_unexpressed

OF_LAYERS = "the definition of EncoderLayer has no"
REFUSED = {
    "window": ("[variant]\nwindow = 4", "seq2seq", f"conform.toml: variant.window: {OF_LAYERS} window"),
    "alibi": ("[variant]\npositions = 'alibi'", "seq2seq", f"variant.positions: {OF_LAYERS} ALiBi"),
    "sinks": ("[variant]\nsinks = true", "seq2seq", "variant.sinks: the definition of CrossAttention has no"),
    "latent": ("[variant]\nlatent = 8", "seq2seq", "variant.latent: the definition of CrossAttention has no latent"),
    "bert": ("[variant]\npositions = 'alibi'", "encoder", "variant.positions: the definition of BertModel has no"),
    "images": ("[variant]\nsinks = true", "vit", "variant.sinks: the definition of VisionTransformer has no"),
    "experts": ("[variant]\nexperts = 4", "seq2seq", "variant.experts: the definition of CrossAttention has no"),
    "gate": ("[variant]\noutput_gate = 'heads'", "seq2seq", "variant.output_gate: the definition of CrossAttention"),
    "tied-scale": (
        "[variant]\ntied = true\ntied_scale = true", "encoder", "variant.tied_scale: the definition of BertModel has no"
    ),
    "relative": ("[variant]\npositions = 'relative'", "encoder", "variant.positions: the definition of BertModel"),
    "one-component": (
        "[components.Decoder]\nvariant = { window = 4 }", "seq2seq",
        "components.Decoder.variant.window: the definition of Decoder has no window; leave it out, or skip Decoder",
    ),
}  # fmt: skip
ACCEPTED = {
    "core": ("[variant]\nwindow = 4\nsinks = true", "core"),
    "attention-alone": ("[variant]\nwindow = 4", "milestone2"),
    "another-component": ("[components.TinyTransformerLM.variant]\nwindow = 4", "seq2seq"),
    "attention-across-alone": ("[components.CrossAttention]\nvariant = { window = 4 }", "seq2seq"),
    "relative": ("[variant]\npositions = 'relative'", "seq2seq"),
    "division-of-both": ("[variant]\ntied = true\ntied_scale = true", "seq2seq"),
    "rotary": ("[variant]\npositions = 'rotary'\nrotary_fraction = 0.5", "seq2seq"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_definition_would_ignore_is_refused_by_its_key(name: str) -> None:
    text, profile, message = REFUSED[name]
    with pytest.raises(ConfigError) as raised:
        refuse_unexpressed(parse_config(text), profile)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_a_definition_has_is_accepted(name: str) -> None:
    text, profile = ACCEPTED[name]
    refuse_unexpressed(parse_config(text), profile)


def test_a_run_ends_with_exit_code_3(tmp_path: Path) -> None:
    """Would break if a run did not ask: the choice was accepted and did nothing."""
    (tmp_path / "mine.py").write_text("class Transformer:\n    pass\n", encoding="utf-8")
    (tmp_path / "conform.toml").write_text("[variant]\nwindow = 4\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "conformkit.cli",
        "run",
        "--impl",
        str(tmp_path / "mine.py"),
        "--profile",
        "seq2seq",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "variant.window" in done.stdout + done.stderr
