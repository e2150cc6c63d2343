"""Tiny random models of transformers, converted into the definition's variant and hand-written styles, and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformkit.conformance import port
from conformkit.conformance.apps.port.family import families
from tests.needs import optional

RIGHT = Path(__file__).parents[1] / "right"
STYLES = {
    "gpt2": ("nano_gpt", "gpt2_conv1d"),
    "llama": ("grouped_qkv", "handed_tables", "llama"),
    "gemma": ("gemma",),
    "mistral": ("grouped_qkv",),
    "phi3": ("grouped_qkv",),
}
"""Hand-written code in the variant of a family."""
SETTINGS = {"llama": {"rope_theta": 500000.0, "num_attention_heads": 4, "num_key_value_heads": 2}}
"""What the config.json of a family says for a style, besides ε."""
PAIRS = [(name, style) for name, styles in STYLES.items() for style in styles]
CLASSES = [name for name, family in families().items() if family.path]


def named(name: str) -> str:
    return f"transformers:{families()[name].path.rpartition(':')[2]}"


def test_at_least_twelve_families_have_a_class() -> None:
    assert len(CLASSES) >= 12


@pytest.mark.full(guard="test_at_least_twelve_families_have_a_class")
@pytest.mark.parametrize("name", CLASSES)
def test_the_definition_stands_in_for_a_class(name: str) -> None:
    optional("transformers")
    report = port("", named(name), like=name)
    assert report.proved, (report.first, report.code, report.differences, report.mistakes)


@pytest.mark.full(guard="test_at_least_twelve_families_have_a_class")
@pytest.mark.parametrize(("name", "style"), PAIRS, ids=lambda value: value)
def test_a_class_and_hand_written_code_are_converted_in_both_directions(name: str, style: str, tmp_path: Path) -> None:
    optional("transformers")
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"rms_norm_eps": 1e-6, **SETTINGS.get(style, {})}), encoding="utf-8")
    there = port(named(name), str(RIGHT / style), config=config if name in {"llama", "mistral", "phi3"} else None)
    back = port(str(RIGHT / style), named(name))
    assert back.proved, (back.first, back.code, back.differences, back.mistakes)
    assert there.proved, (there.first, there.code, there.differences, there.mistakes)
