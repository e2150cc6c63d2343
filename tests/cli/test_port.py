"""`conform port`: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from conformkit.conformance.apps.port.family import families
from conformkit.conformance.apps.port.json_form import schema
from tests.apps.port.test_porting import checkpoint
from tests.tiers import sampled

RIGHT = Path(__file__).parents[1] / "right"
NANO = str(RIGHT / "nano_gpt")


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({name: np.ascontiguousarray(array) for name, array in checkpoint("gpt2").items()}, path)
    return path


def test_a_checkpoint_is_converted_proved_and_reported(process, weights, tmp_path):
    out, report = tmp_path / "mine.safetensors", tmp_path / "report.json"
    options = ["--check", str(weights), NANO, "--like", "gpt2", "--size", "num_heads=4"]
    result = process("port", *options, "--out", str(out), "--json", str(report), env={"COLUMNS": "200"})
    assert result.returncode == 0, result.stderr
    assert "PROVED" in result.stdout
    found = json.loads(report.read_text(encoding="utf-8"))
    jsonschema.validate(found, schema())
    assert found["written"] == str(out)
    assert found["checkpoint"]["sizes"]["num_layers"] == 3
    stored = load_file(out)
    np.testing.assert_array_equal(
        stored["transformer.h.0.mlp.c_fc.weight"], load_file(weights)["transformer.h.0.mlp.c_fc.weight"].T
    )
    assert "lm_head.weight" in stored, "a strict load_state_dict wants the tied head, too"


@pytest.mark.parametrize("sides", [("nothere", NANO), (NANO, "nothere")], ids=["theirs", "ours"])
def test_the_side_that_cannot_be_loaded_is_named(process, sides):
    result = process("port", *sides, env={"COLUMNS": "200"})
    assert result.returncode == 3
    assert "nothere cannot be used: no module 'nothere'" in result.stderr


@pytest.mark.full(guard="test_a_checkpoint_is_converted_proved_and_reported")
def test_a_wrong_conversion_is_named_and_the_map_is_the_right_one(process, weights, tmp_path):
    wrong = tmp_path / "wrong.safetensors"
    options = ["--check", str(weights), NANO, "--like", "gpt2", "--size", "num_heads=4"]
    printed = process("port", *options, "--map").stdout
    namespace: dict = {}
    exec(printed, namespace)
    made = namespace["convert"](load_file(weights))
    made = {name: np.ascontiguousarray(array) for name, array in made.items()}
    first, second = (f"transformer.h.{i}.attn.c_attn.weight" for i in (0, 1))
    save_file({**made, first: made[second], second: made[first]}, wrong)
    result = process("port", *options, "--converted", str(wrong), env={"COLUMNS": "200"})
    assert result.returncode == 1
    assert "first different: blocks.0.attention" in result.stdout
    assert "the numbers of blocks.1.attention.q.weight" in result.stdout


USAGE = {
    "one-side": ([NANO], "give THEIRS and OURS"),
    "misspelt": (["--like", "gpt3", NANO], "there is no family 'gpt3'; nearest: gptj, gpt2"),
    "refused": (["--like", "deepseek_v3", NANO], "its experts are weighted by sigmoids"),
    "no-family": (["--check", "FILE", NANO], "needs the family"),
    "no-weights": (["--like", "gpt2", NANO, "--out", "x.safetensors"], "needs weights to convert"),
    "no-source": (["--like", "gpt2", NANO, "--converted", "FILE"], "--converted needs the weights"),
    "same-file": (["--like", "gpt2", NANO, "--weights", "FILE", "--out", "FILE"], "one of the files that are read"),
    "class": (["transformers:BertModel", NANO], "is not a class whose weights are known here"),
    "size": (["--like", "gpt2", NANO, "--size", "heads=4"], "'heads' is not a size"),
}
GPT2 = ["--like", "gpt2", NANO, "--weights", "FILE"]
UNUSABLE = {
    "no-code": (["--like", "gpt2", "no_such_package"], "no module 'no_such_package'"),
    "no-file": (["--like", "gpt2", NANO, "--weights", "nothing.safetensors"], "there is no file nothing.safetensors"),
    "config": ([*GPT2, "--config", "FILE"], "cannot be read as JSON"),
    "heads": (GPT2, "do not tell num_heads"),
    "family": (["--like", "llama", NANO, "--weights", "FILE"], "is it of another family?"),
    "left-over": ([*GPT2, "--size", "num_heads=4", "--size", "num_layers=2"], "tensors for which"),
    "missing": ([*GPT2, "--size", "num_heads=4", "--size", "num_layers=4"], "lacks 12 of 52 tensors"),
    "shape": ([*GPT2, "--size", "num_heads=4", "--size", "d_ff=95"], "takes d_ff 4 * d_model, the checkpoint has 95"),
}


@pytest.mark.parametrize("case", USAGE)
def test_wrong_usage_is_a_sentence_before_anything_runs(conform, weights, case):
    arguments, said = USAGE[case]
    result = conform("port", *(str(weights) if argument == "FILE" else argument for argument in arguments))
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize("case", sampled(UNUSABLE, always=["missing"], most=1))
def test_what_cannot_be_used_is_a_sentence_and_leaves_nothing_behind(process, weights, tmp_path, case):
    arguments, said = UNUSABLE[case]
    given = [str(weights) if argument == "FILE" else argument for argument in arguments]
    before = sorted(tmp_path.iterdir())
    result = process("port", *given, cwd=tmp_path, env={"COLUMNS": "300"})
    assert (result.returncode, said in " ".join(result.stderr.split())) == (3, True), result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_the_guide_lists_the_families():
    """Would break if a family were added, and the guide still said that it is refused."""
    text = (RIGHT.parents[1] / "docs" / "port.md").read_text(encoding="utf-8")
    listed = text.partition("\nFamilies: ")[2].partition(". ")[0]
    assert re.findall(r"`(\w+)`", listed) == sorted(families())
