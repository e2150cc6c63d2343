"""Families with experts, ALiBi, or sublayers in parallel: proved in code by hand; what is refused, and why."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformkit.conformance import port
from conformkit.conformance.apps.port.family import family
from conformkit.conformance.apps.port.problems import Unportable
from tests.apps.port.test_porting import RIGHT, checkpoint

HERE = Path(__file__).parent
BY_HAND: dict[str, tuple[Path, dict[str, int], dict[str, Any]]] = {
    "bloom": (RIGHT / "bloom", {}, {"n_head": 4}),
    "gpt_neox": (HERE / "beside", {"d_model": 32}, {"num_attention_heads": 4, "hidden_size": 32, "rotary_pct": 0.25}),
    "mixtral": (HERE / "mixture", {"kv_heads": 2}, {"num_attention_heads": 4, "num_key_value_heads": 2}),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_a_family_is_proved_in_code_by_hand_and_its_map_makes_the_same(name: str, tmp_path: Path) -> None:
    code, sizes, said = BY_HAND[name]
    weights, config = checkpoint(name, **sizes), tmp_path / "config.json"
    config.write_text(json.dumps(said), encoding="utf-8")
    report = port("", str(code), weights, like=name, config=config)
    assert report.proved, (report.first, report.differences, report.problems, report.mistakes)
    namespace: dict[str, Any] = {}
    exec(report.map, namespace)
    made = namespace["convert"](weights)
    assert made.keys() == report.converted.keys()
    for target, array in made.items():
        np.testing.assert_allclose(array, report.converted[target], atol=1e-6, err_msg=target)


def test_the_number_of_experts_is_read_from_the_names_and_another_one_is_a_difference(tmp_path: Path) -> None:
    shutil.copytree(HERE / "mixture", tmp_path / "mixture", ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in (
        ("__init__.py", "few, hidden, 8)", "few, hidden, 4)"),
        ("conform.toml", "kv_", "experts = 4\nkv_"),
    ):
        path = tmp_path / "mixture" / name
        path.write_text(path.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    report = port(
        "", str(tmp_path / "mixture"), checkpoint("mixtral", kv_heads=2), like="mixtral", sizes={"num_heads": 4}
    )
    assert report.differences == {"experts": ("experts = 8", "experts = 4")}
    assert not report.proved


def test_qwen3_with_experts_is_proved_in_code_by_hand(tmp_path: Path) -> None:
    code, config = tmp_path / "mixture", tmp_path / "config.json"
    shutil.copytree(HERE / "mixture", code, ignore=shutil.ignore_patterns("__pycache__"))
    norms = "self.q_norm, self.k_norm = (nn.RMSNorm(width // heads, eps=1e-6) for _ in range(2))"
    for name, old, new in (
        ("__init__.py", "self.router = ", f"{norms}\n        self.router = "),
        ("__init__.py", "turned(q), turned(k)", "turned(self.q_norm(q)), turned(self.k_norm(k))"),
        ("__init__.py", "1e-5", "1e-6"),
        ("conform.toml", '"mixtral"', '"qwen3_moe"\nexperts = 8\nexperts_active = 2'),
    ):
        path = code / name
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    said = {"num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True, "head_dim": 6, "hidden_size": 24}
    said |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    config.write_text(json.dumps(said), encoding="utf-8")
    report = port("", str(code), checkpoint("qwen3_moe", said, kv_heads=2), like="qwen3_moe", config=config)
    assert report.proved, (report.first, report.differences, report.problems, report.mistakes)


def test_weights_whose_names_do_not_say_which_norm_is_which_are_bound_by_their_numbers() -> None:
    report = port("", str(HERE / "four_norms"), like="gemma2")
    assert report.proved, (report.first, report.differences, report.problems, report.mistakes)


def test_gpt_oss_is_proved_in_code_by_hand(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    scaling = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "truncate": False}
    said = {"rope_scaling": scaling, "sliding_window": 5, "num_local_experts": 6, "num_experts_per_tok": 2}
    said |= {"head_dim": 6, "hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2}
    config.write_text(json.dumps(said), encoding="utf-8")
    weights = checkpoint("gpt_oss", said, kv_heads=2)
    report = port("", str(HERE / "oss"), weights, like="gpt_oss", config=config)
    assert report.proved, (report.first, report.differences, report.problems, report.mistakes)
    wrong = dict(report.converted)
    for name, array in report.converted.items():
        if "gate_up" in name:
            wrong[name] = np.concatenate([array[:, 0::2], array[:, 1::2]], axis=1)
    mistaken = port("", str(HERE / "oss"), weights, like="gpt_oss", config=config, converted=wrong)
    assert [m.id for m in mistaken.mistakes] == ["gate-up-read-interleaved"]


def test_gemma3_is_proved_in_code_by_hand(tmp_path: Path) -> None:
    code, config = tmp_path / "gemma3", tmp_path / "config.json"
    shutil.copytree(RIGHT / "gemma3", code, ignore=shutil.ignore_patterns("__pycache__"))
    for name, old, new in (
        ("__init__.py", "self.kinds[number % 2]", "self.kinds[(number + 1) % 6 > 0]"),
        ("conform.toml", 'window_layers = "odd"', 'window_layers = "5 of 6"'),
    ):
        path = code / name
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    said = {"rope_theta": 500000.0, "rope_local_base_freq": 10000.0, "sliding_window": 4, "sliding_window_pattern": 6}
    said |= {"head_dim": 6, "hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 1}
    config.write_text(json.dumps(said), encoding="utf-8")
    weights = checkpoint("gemma3", said, kv_heads=1, num_layers=7)
    report = port("", str(code), weights, like="gemma3", config=config)
    assert report.proved, (report.first, report.differences, report.problems, report.mistakes)


def test_numbers_that_a_file_rounds_once_more_are_right(tmp_path: Path) -> None:
    """A norm's 1 + w becomes float32, and the comparison is in float64."""
    weights, code, config = checkpoint("gemma2", kv_heads=2), str(HERE / "four_norms"), tmp_path / "config.json"
    config.write_text(json.dumps({"num_attention_heads": 4, "num_key_value_heads": 2}), encoding="utf-8")
    converted = port("", code, weights, like="gemma2", config=config).converted
    report = port("", code, weights, like="gemma2", config=config, converted=converted)
    assert report.proved, (report.first, report.checkpoint, report.mistakes)


def test_config_json_says_shares_of_heads_and_placements() -> None:
    assert family("gptj").variant({"rotary_dim": 64, "n_embd": 4096, "n_head": 16}).rotary_fraction == 0.25
    assert family("neox").variant({"use_parallel_residual": False}).placement == "pre"
    assert family("qwen3_moe").variant({"norm_topk_prob": False, "num_experts": 4}).expert_weights == "all"
    with pytest.raises(Unportable, match="are not available without n_embd and n_head"):
        family("gptj").variant({"rotary_dim": 64})


@pytest.mark.parametrize(
    ("name", "why"), [("vaswani", "a style"), ("bert", "predict the next id"), ("t5", "encoder-decoder")]
)
def test_a_preset_without_files_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(Unportable, match=why) as refused:
        family(name)
    assert refused.value.usage
