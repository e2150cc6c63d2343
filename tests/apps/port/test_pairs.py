"""Thirteen families of checkpoints in nine hand-written styles: proved, and the printed map makes the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformkit.conformance import port
from tests.apps.port.test_porting import RIGHT, checkpoint
from tests.tiers import sampled

GPT2 = ("gpt2", "gpt_bigcode", "gpt_neo")
LLAMA = ("llama", "mistral", "phi3", "granite", "helium", "glm", "qwen2")
STYLES: dict[str, tuple[tuple[str, ...], int]] = {
    "nano_gpt": (GPT2, 4), "gpt2_conv1d": (GPT2, 4), "grouped_qkv": (LLAMA, 2), "handed_tables": (LLAMA, 4),
    "llama": (LLAMA, 2), "gemma": (("gemma",), 1), "mqa": (("gemma",), 1), "gemma2": (("gemma2",), 1),
    "olmo": (("olmo2",), 4),
}  # fmt: skip
"""What goes into each style, and with how many heads of keys and values."""
PAIRS = [f"{family}-{style}" for style, (families, _) in STYLES.items() for family in families]
OF_CONFIG: dict[str, dict[str, Any]] = {"glm": {"partial_rotary_factor": 1.0}}


@pytest.mark.parametrize("pair", sampled(PAIRS, always=["helium-grouped_qkv"], most=1))
def test_a_family_is_proved_in_a_style_and_the_printed_map_makes_the_same(pair: str, tmp_path: Path) -> None:
    family, style = pair.split("-")
    heads = 1 if family == "gpt_bigcode" else STYLES[style][1]
    weights = checkpoint(family, **({} if family in {"gpt2", "gpt_neo"} else {"kv_heads": heads}))
    if family in {"glm", "qwen2"}:  # the styles have no biases there; zeros are none
        weights = {name: array * 0 if name.endswith("proj.bias") else array for name, array in weights.items()}
    said: dict[str, Any] = {"n_head": 4, "num_heads": 4, "hidden_size": 24}
    if family not in GPT2:
        said = {"num_attention_heads": 4, "num_key_value_heads": heads, "head_dim": 6, "hidden_size": 24}
        said |= {"rms_norm_eps": 1e-6, "rope_theta": 500000.0 if style == "llama" else 10000.0}
        said |= OF_CONFIG.get(family, {})
    path = tmp_path / "config.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    report = port("", str(RIGHT / style), weights, like=family, config=path)
    assert report.proved, (report.first, report.differences, report.problems, report.mistakes)
    namespace: dict[str, Any] = {}
    exec(report.map, namespace)
    made = namespace["convert"](weights)
    assert made.keys() == report.converted.keys()
    for name, array in made.items():
        np.testing.assert_allclose(array, report.converted[name], atol=1e-6, err_msg=name)
