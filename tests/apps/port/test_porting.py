"""Conversions from end to end: proved, or not with the mistake's name, and the map that does the same."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformkit.conformance import port
from conformkit.conformance.apps.port.definition import Definition
from conformkit.conformance.apps.port.family import family
from conformkit.conformance.apps.port.port import port as convert
from conformkit.conformance.apps.port.proof import EMBEDDING, drawn_weights
from conformkit.conformance.apps.port.request import PortReport, PortRequest
from conformkit.conformance.apps.port.sides import parameters_of, rules_at
from conformkit.conformance.binding.patterns import to_implementation
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.spec.arrays import Array
from tests.tiers import sampled

RIGHT = Path(__file__).parents[2] / "right"
SIZES = {"vocab_size": 29, "d_model": 24, "num_heads": 4, "d_ff": 96, "num_layers": 3, "block_size": 16}
SETTINGS: dict[str, dict[str, Any]] = {
    "nano_gpt": {}, "gpt2_conv1d": {}, "grouped_qkv": {"kv_heads": 2}, "handed_tables": {}, "gemma": {"kv_heads": 1},
    "llama": {"kv_heads": 2, "rotary_base": 500000.0},
}  # fmt: skip
FAMILIES = {
    "nano_gpt": "gpt2", "gpt2_conv1d": "gpt2", "grouped_qkv": "llama", "handed_tables": "llama", "gemma": "gemma",
    "llama": "llama",
}  # fmt: skip


def checkpoint(name: str, said: Mapping[str, Any] | None = None, **sizes: int) -> dict[str, Array]:
    """Return random weights of a family, by the names of its files; `said` is a config.json."""
    side = Definition(family(name), family(name).variant(said or {}))
    full = side.at({**SIZES, **sizes})
    known = parameters_of(side, full)
    weights = {n: a.astype(np.float32) for n, a in drawn_weights(known, 3).items()}
    return to_implementation(rules_at(side, full), weights, known, full)


def settings(style: str, folder: Path) -> Path:
    """Write the config.json of a checkpoint for a style."""
    import json

    base = SETTINGS[style].get("rotary_base", 10000.0)
    said: dict[str, Any] = {"rope_theta": base, "num_attention_heads": 4, "n_head": 4}
    said |= {"rms_norm_eps": {"grouped_qkv": 1e-6, "handed_tables": 1e-6}.get(style, 1e-6)}
    said |= {"num_key_value_heads": SETTINGS[style].get("kv_heads", 4), "hidden_size": 24}
    path = folder / "config.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return path


def ported(style: str, folder: Path, **options: Any) -> PortReport:
    kv = {"kv_heads": SETTINGS[style]["kv_heads"]} if "kv_heads" in SETTINGS[style] else {}
    weights = checkpoint(FAMILIES[style], **kv)
    options = {"weights": weights, "config": settings(style, folder), **options}
    return port("", str(RIGHT / style), like=FAMILIES[style], **options)


@pytest.fixture(scope="module")
def nano(tmp_path_factory: pytest.TempPathFactory) -> PortReport:
    """The right conversion of GPT-2's weights for a hand-written model."""
    return ported("nano_gpt", tmp_path_factory.mktemp("nano"))


@pytest.mark.parametrize("style", sampled(FAMILIES, always=["nano_gpt"], most=1))
def test_a_checkpoint_is_converted_and_the_printed_map_does_the_same(style: str, tmp_path: Path) -> None:
    report = ported(style, tmp_path)
    assert report.proved, (report.first, report.differences, report.problems, report.mistakes)
    namespace: dict[str, Any] = {}
    exec(report.map, namespace)
    kv = {"kv_heads": SETTINGS[style]["kv_heads"]} if "kv_heads" in SETTINGS[style] else {}
    made = namespace["convert"](checkpoint(FAMILIES[style], **kv))
    assert made
    for name, array in made.items():
        np.testing.assert_allclose(array, report.converted[name], atol=1e-6, err_msg=name)
    assert {n for n in report.converted if n not in made} <= {"lm_head.weight", "head.weight"}


@pytest.mark.parametrize("beginning", ["", "module.transformer."])
def test_the_printed_map_has_the_names_of_the_file(beginning: str, tmp_path: Path) -> None:
    """The files of GPT-2 that are downloaded most lack `transformer.`."""
    given = {name.replace("transformer.", beginning): array for name, array in checkpoint("gpt2").items()}
    report = port("", str(RIGHT / "nano_gpt"), given, like="gpt2", config=settings("nano_gpt", tmp_path))
    assert report.proved, (report.problems, report.differences)
    namespace: dict[str, Any] = {}
    exec(report.map, namespace)
    for name, array in namespace["convert"](given).items():
        np.testing.assert_array_equal(array, report.converted[name], err_msg=name)


def test_fused_weights_split_in_the_wrong_way_are_named(nano: PortReport, tmp_path: Path) -> None:
    right = nano.converted
    wrong = dict(right)
    for name, array in right.items():
        if "c_attn" in name:
            heads = array.reshape(4, 3, 6, *array.shape[1:])
            wrong[name] = heads.swapaxes(0, 1).reshape(array.shape)
    report = ported("nano_gpt", tmp_path, converted=wrong)
    assert not report.proved
    assert report.first == "blocks.0.attention"
    assert [m.id for m in report.mistakes] == ["qkv-flat-read-per-head"]
    assert report.mistakes[0].certainty == "exact"
    assert not report.converted


@pytest.mark.full(guard="test_fused_weights_split_in_the_wrong_way_are_named")
def test_a_conversion_without_mistakes_is_confirmed(nano: PortReport, tmp_path: Path) -> None:
    right = nano.converted
    report = ported("nano_gpt", tmp_path, converted=right)
    assert report.proved
    assert report.notes == ()


@pytest.mark.full(guard="test_fused_weights_split_in_the_wrong_way_are_named")
def test_a_tensor_that_is_missing_or_of_another_shape_is_a_problem_with_its_name(
    nano: PortReport, tmp_path: Path
) -> None:
    wrong = dict(nano.converted)
    del wrong["transformer.ln_f.bias"]
    wrong["transformer.h.1.mlp.c_fc.weight"] = wrong["transformer.h.1.mlp.c_fc.weight"].T.copy()
    report = ported("nano_gpt", tmp_path, converted=wrong)
    assert not report.proved
    assert "the converted weights lacks transformer.ln_f.bias" in report.problems
    assert any("(24, 96), expected (96, 24)" in m.sentence and m.id == "transposed" for m in report.mistakes)


@pytest.mark.full(guard="test_fused_weights_split_in_the_wrong_way_are_named")
def test_code_with_another_epsilon_or_base_is_not_proved_and_says_which(tmp_path: Path) -> None:
    path = settings("llama", tmp_path)
    path.write_text(path.read_text(encoding="utf-8").replace("500000.0", "10000.0"), encoding="utf-8")
    report = port("", str(RIGHT / "llama"), checkpoint("llama", kv_heads=2), like="llama", config=path)
    assert not report.proved
    assert report.differences["rotary_base"] == ("rotary_base = 10000", "rotary_base = 500000")
    assert [m.id for m in report.mistakes] == ["theta-500000"]
    assert report.first == "blocks.0.attention"


def test_the_part_of_a_head_that_rotates_goes_from_pairs_to_halves(tmp_path: Path) -> None:
    weights, path = checkpoint("gptj", d_model=32), tmp_path / "config.json"
    path.write_text('{"n_embd": 32, "n_head": 4, "rotary_dim": 4}', encoding="utf-8")
    report = port("", str(Path(__file__).parent / "part_halves"), weights, like="gptj", config=path)
    assert report.proved, (report.first, report.differences, report.mistakes)
    namespace: dict[str, Any] = {}
    exec(report.map, namespace)
    for name, array in namespace["convert"](weights).items():
        np.testing.assert_array_equal(array, report.converted[name], err_msg=name)


@pytest.mark.full(guard="test_a_checkpoint_is_converted_and_the_printed_map_does_the_same")
def test_random_weights_test_a_conversion_without_any_checkpoint() -> None:
    report = port("", str(RIGHT / "gpt2_conv1d"), like="gpt2")
    assert report.proved
    assert report.checkpoint is None


@pytest.mark.full(guard="test_a_checkpoint_is_converted_and_the_printed_map_does_the_same")
def test_code_is_a_side_like_any_other() -> None:
    report = port(str(RIGHT / "gpt2_conv1d"), str(RIGHT / "nano_gpt"))
    assert report.proved
    assert 'rearrange(theirs[f"h.{i}.mlp.c_fc.weight"], "m f -> f m")' in report.map


@pytest.mark.full(guard="test_a_checkpoint_is_converted_and_the_printed_map_does_the_same")
def test_the_map_for_arrays_of_all_layers_does_the_same() -> None:
    report = port(str(RIGHT / "stacked_layers"), str(RIGHT / "stacked_layers"))
    assert report.proved
    namespace: dict[str, Any] = {}
    exec(report.map, namespace)
    draw = np.random.default_rng(0)
    shapes = {"wq": (3, 24, 4, 6), "wk": (3, 24, 4, 6), "wv": (3, 24, 4, 6), "wo": (3, 4, 6, 24)}
    shapes |= {"w_in": (3, 24, 96), "w_out": (3, 96, 24), "scale_a": (3, 24), "scale_b": (3, 24)}
    shapes |= {"embedding": (19, 24), "unembedding": (24, 19)}
    theirs = {name: draw.standard_normal(shape) for name, shape in shapes.items()}
    for name, array in namespace["convert"](theirs).items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


PER_HEAD = Path(__file__).parent / "per_head"


def test_a_tied_head_is_proved_in_code_whose_head_is_a_matrix_of_its_own() -> None:
    report = port("", str(PER_HEAD), checkpoint("gpt2"), like="gpt2", sizes={"num_heads": 4})
    assert report.proved, (report.first, report.code, report.checkpoint, report.mistakes)
    np.testing.assert_array_equal(report.converted["head.weight"], report.converted["embed.weight"])


@pytest.mark.full(guard="test_a_tied_head_is_proved_in_code_whose_head_is_a_matrix_of_its_own")
@pytest.mark.parametrize("equal", [True, False], ids=["equal", "separate"])
def test_a_separate_head_is_proved_in_code_that_ties_it_where_the_file_has_it_twice(
    equal: bool, tmp_path: Path
) -> None:
    weights = checkpoint("gpt2")
    twice = {**weights, "lm_head.weight": weights["transformer.wte.weight"] * (1 if equal else 2)}
    path = tmp_path / "config.json"
    path.write_text('{"n_head": 4, "tie_word_embeddings": false}', encoding="utf-8")
    report = port("", str(RIGHT / "nano_gpt"), twice, like="gpt2", config=path)
    assert report.proved is equal, (report.first, report.differences, report.problems)
    assert ("tied" in report.differences) is not equal


def test_code_with_another_activation_is_bound_and_its_first_difference_is_there(tmp_path: Path) -> None:
    shutil.copytree(PER_HEAD, tmp_path / "erf", ignore=shutil.ignore_patterns("__pycache__"))
    source = tmp_path / "erf" / "__init__.py"
    source.write_text(source.read_text(encoding="utf-8").replace('"tanh"', '"none"'), encoding="utf-8")
    report = port("", str(tmp_path / "erf"), like="gpt2")
    assert report.first == "blocks.0.feed_forward"
    assert report.differences == {"activation": ("GELU's tanh approximation", "GELU")}
    assert [m.id for m in report.mistakes] == ["gelu-exact"]


def test_two_mistakes_in_the_code_are_named_without_a_search_through_variants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(RIGHT / "nano_gpt", tmp_path / "nano_gpt", ignore=shutil.ignore_patterns("__pycache__"))
    for source in (tmp_path / "nano_gpt").glob("*.py"):
        text = source.read_text(encoding="utf-8").replace("x + self.mlp(", "self.mlp(")
        text = text.replace("+ self.transformer.wpe(pos)", "+ 2 * self.transformer.wpe(pos)")
        source.write_text(text, encoding="utf-8")
    monkeypatch.setattr("conformkit.conformance.apps.port.opening.searched", pytest.fail)
    report = port("", str(tmp_path / "nano_gpt"), like="gpt2")
    assert report.first == EMBEDDING
    assert {m.id for m in report.mistakes} == {"positions-added-twice", "residual-of-feed-forward-missing"}


def test_a_file_is_only_written_when_it_is_proved(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.safetensors", tmp_path / "bad.safetensors"
    told: list[tuple[str, int]] = []
    weights, config = checkpoint("gpt2"), settings("nano_gpt", tmp_path)
    request = PortRequest(ours=str(RIGHT / "nano_gpt"), like="gpt2", weights=weights, config=config, out=good)
    assert convert(request, lambda *step: told.append(step)).written == str(good)
    check_progress(told)
    path = tmp_path / "other.json"
    path.write_text('{"n_head": 4, "layer_norm_epsilon": 1e-3}', encoding="utf-8")
    assert not ported("nano_gpt", tmp_path, out=bad, config=path).written
    assert [p.name for p in tmp_path.iterdir() if "safetensors" in p.name] == ["good.safetensors"]


def check_progress(told: list[tuple[str, int]]) -> None:
    """Check that a bar says what is done, in the order of what is done, and comes to its end each time."""
    assert [what for what, _ in told if what] == [
        "binding theirs", "binding ours", "comparing with small random weights",
        "comparing with the checkpoint's weights", "converting",
    ]  # fmt: skip
    totals = [total for what, total in told if what]
    steps = [len(part) for part in "".join(" |"[bool(what)] for what, _ in told).split("|")[1:]]
    assert totals[:4] == [1, 1, 2, 2]
    assert steps[:4] == [0, 0, 1, 1]  # the second side of a comparison is its second step
    assert totals[4] == steps[4] > 10


@pytest.mark.full(guard="test_a_checkpoint_is_converted_and_the_printed_map_does_the_same")
def test_numbers_that_are_not_finite_are_named_with_their_tensor(tmp_path: Path) -> None:
    weights = checkpoint("gpt2")
    weights["transformer.h.1.mlp.c_fc.weight"][2, 3] = np.nan
    report = ported("nano_gpt", tmp_path, weights=weights)
    assert not report.proved
    assert report.problems == ("the weights: transformer.h.1.mlp.c_fc.weight has numbers that are not finite",)


@pytest.mark.full(guard="test_a_checkpoint_is_converted_and_the_printed_map_does_the_same")
def test_weights_in_bfloat16_stay_in_bfloat16(tmp_path: Path) -> None:
    from conformkit.conformance.apps.port.safetensors_files import SafetensorsFile, TensorEntry, write_safetensors

    weights = checkpoint("gpt2")
    half = tmp_path / "half.safetensors"
    write_safetensors(half, {n: TensorEntry("bfloat16", a.shape) for n, a in weights.items()}, weights.items())
    out = tmp_path / "out.safetensors"
    report = ported("nano_gpt", tmp_path, weights=half, out=out)
    assert report.proved
    assert {entry.dtype for entry in SafetensorsFile(out).entries.values()} == {"bfloat16"}
    stored = SafetensorsFile(half).read("transformer.h.0.mlp.c_fc.weight")
    np.testing.assert_array_equal(SafetensorsFile(out).read("transformer.h.0.mlp.c_fc.weight"), stored.T)


def test_a_sandbox_that_is_asked_for_is_never_a_plain_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: Any, **__: Any) -> None:
        raise IsolationUnavailable("no sandbox here")

    monkeypatch.setattr("conformkit.conformance.driver.sandbox.sandbox.SandboxedProcess", unavailable)
    with pytest.raises(IsolationUnavailable):
        convert(PortRequest(str(RIGHT / "nano_gpt"), like="gpt2", isolation="sandbox"))
