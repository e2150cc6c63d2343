"""`conform train` and `conform sample`: what they write, and every refusal as a sentence and an exit code."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformkit.reference.training import figures, metrics
from tests.reference.training.conftest import SMALL


@pytest.fixture
def settings(tmp_path: Path, corpus: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(corpus=corpus.name))
    return path


@pytest.fixture
def trained(conform: Any, settings: Path, tmp_path: Path) -> Path:
    assert conform("train", "--config", settings, "--out", "run", "--no-pictures", "-q").exit_code == 0
    return tmp_path / "run"


def test_a_run_is_kept_in_its_folder(conform: Any, settings: Path, tmp_path: Path) -> None:
    result = conform("train", "--config", settings, "--no-pictures", "--seed", 3, "--set", "model.num_layers=1")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("2,885 parameters, vocabulary 29, 1,620 tokens to learn from, 180 to validate on")
    assert [line.split(" · ")[0] for line in lines[1:4]] == ["step  4/12", "step  8/12", "step 12/12"]
    assert re.match(r"trained, 12 steps; best validation loss \d\.\d{4} at step \d+$", lines[4])
    assert lines[5:] == ["report: runs/small/report.html", "text:   conform sample runs/small"]
    folder = tmp_path / "runs" / "small"
    assert {path.name for path in folder.iterdir()} == {
        "attention", "checkpoints", "config.toml", "gradients.jsonl", "metrics.jsonl", "report.html", "samples.jsonl",
    }  # fmt: skip
    assert "num_layers = 1" in (folder / "config.toml").read_text()
    assert f'corpus = "{tmp_path}/corpus.txt"' in (folder / "config.toml").read_text()  # found from anywhere
    assert "seed = 3" in (folder / "config.toml").read_text()
    assert len(metrics.read_lines(folder / "samples.jsonl")) == 2


def test_the_command_that_is_printed_works_as_it_stands(conform: Any, settings: Path) -> None:
    """Would break if a folder with a blank in its name were printed as two words."""
    result = conform("train", "--config", settings, "--out", "runs/my first", "--no-pictures", "-q")
    (command,) = re.findall(r"^text: +conform (.*)$", result.stdout, re.MULTILINE)
    assert command == "sample 'runs/my first'"
    assert conform(*shlex.split(command)).exit_code == 0


def test_a_run_continues_for_more_steps(conform: Any, trained: Path) -> None:
    result = conform("train", "--resume", trained, "--steps", 16, "--no-pictures")
    assert result.exit_code == 0
    assert "step 16/16" in result.stdout
    assert "step 12" not in result.stdout


def test_text_is_continued(conform: Any, trained: Path) -> None:
    first = conform("sample", trained, "--prompt", "the quick", "--tokens", 12, "--temperature", 0)
    assert first.exit_code == 0
    assert first.stdout.startswith("the quick")
    assert len(first.stdout.rstrip("\n")) == 21 or "\n" in first.stdout[:-1]
    drawn = [conform("sample", trained, "--tokens", 30, "--seed", seed).stdout for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0].startswith("\n")  # the default prompt, since the vocabulary has it
    each = ("--prompt", "a", "--prompt", "b", "--temperature", 0, "--temperature", 1)
    several = conform("sample", trained, "--tokens", 2, *each)
    assert [line for line in several.stdout.splitlines() if line.startswith("---")] == [
        "--- 'a', temperature 0", "--- 'a', temperature 1", "--- 'b', temperature 0", "--- 'b', temperature 1",
    ]  # fmt: skip
    from_file = conform("sample", trained / "checkpoints" / "best.safetensors", "--tokens", 3)
    assert from_file.exit_code == 0


def test_recipes_are_listed(conform: Any) -> None:
    result = conform("train", "--recipes")
    assert result.exit_code == 0
    assert "tiny: a tiny language model" in result.stdout
    assert "nanogpt:" in result.stdout


def write(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--corpus", "empty.txt"], "the corpus empty.txt is empty"),
        (["--corpus", "latin.txt"], "the corpus latin.txt is not UTF-8 at byte 1"),
        (["--corpus", "short.txt"], "the validation part of the corpus is 4 tokens long, expected at least"),
        (["--corpus", "none.txt"], "there is no none.txt"),
        (["--corpus", "."], "the corpus . is a folder"),
        (["--recipe", "tinny"], "nearest: tiny"),
        (
            ["--recipe", "vit-digits", "--corpus", "mine.txt"],
            "data.corpus is mine.txt, expected none: the images of digits",
        ),
        (["--set", "model.d_modle=3"], "nearest: model.d_model"),
        (["--set", "model.d_model"], "is not KEY=VALUE"),
        (["--set", "model.dropout=1.5"], "model.dropout is 1.5, expected at least 0 and below 1"),
        (["--set", 'samples.prompts=["7"]'], "a character is '7', expected one of the 29"),
        (["--device", "abacus"], "speed.device is 'abacus'"),
        (["--out", "taken"], "taken is there already, expected a new name, or --resume"),
        (["--out", "empty.txt/run"], "not writable"),
        (["--config", "none.toml"], "there is no none.toml"),
        (["--resume", "taken"], "taken is no folder of a run"),
        (["--resume", "taken", "--out", "other"], "contradicts --resume"),
        (["--checkpoint", "empty.txt"], "needs --resume"),
        (["--ablate", "empty.txt"], "the table empty.txt is without variants"),
        (["--ablate", "none"], "neither bundled nor a file, expected capstone, eighth, habits, small or a path"),
        (["--color", "blue"], "'blue' is not one of"),
    ],
    ids=lambda value: "-".join(value).replace("--", "") if isinstance(value, list) else "",
)
def test_wrong_usage_is_a_sentence(conform: Any, settings: Path, tmp_path: Path, options: list[str], says: str) -> None:
    write(tmp_path / "empty.txt", b"")
    write(tmp_path / "latin.txt", b"a\xffb")
    write(tmp_path / "short.txt", b"abcd" * 10)
    (tmp_path / "taken").mkdir()
    write(tmp_path / "taken" / "note", b"mine")
    own = [] if {"--recipe", "--config", "--resume"} & set(options) else ["--config", settings]
    result = conform("train", *own, *options, "--no-pictures")
    assert result.exit_code == 2, result.output
    assert " ".join(says.split()) in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "runs").exists()
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["note"]


def cut(path: Path) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[: len(content) // 2])


def test_a_truncated_checkpoint_is_refused_and_the_one_before_is_used(conform: Any, trained: Path) -> None:
    newest = sorted((trained / "checkpoints").glob("0*"))
    cut(newest[-1])
    result = conform("train", "--resume", trained, "--steps", 16, "--no-pictures")
    assert result.exit_code == 3
    assert "00000012.safetensors is cut off or no checkpoint" in result.stderr
    assert "--checkpoint PATH" in result.stderr
    again = conform("train", "--resume", trained, "--checkpoint", newest[-2], "--steps", 16, "--no-pictures")
    assert again.exit_code == 0
    assert "step 12/16" in again.stdout


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--prompt", "7"], 2, "a character is '7', expected one of the 29 of the vocabulary"),
        (["--prompt", ""], 2, "the length of the prompt is 0"),
        (["--top-p", "2"], 2, "top_p is 2.0"),
        (["--device", "abacus"], 2, "speed.device is 'abacus'"),
    ],
    ids=["unknown", "empty", "top-p", "device"],
)
def test_a_prompt_or_option_that_can_not_be_is_a_sentence(
    conform: Any, trained: Path, options: list[str], code: int, says: str
) -> None:
    result = conform("sample", trained, *options)
    assert result.exit_code == code
    assert says in " ".join(result.stderr.split())


def test_what_holds_no_model_is_refused(conform: Any, trained: Path, tmp_path: Path) -> None:
    cut(trained / "checkpoints" / "best.safetensors")
    assert conform("sample", trained).exit_code == 3
    assert conform("sample", tmp_path / "none").exit_code == 2
    assert conform("sample", tmp_path).exit_code == 2


def test_a_run_that_diverges_says_so_and_keeps_its_last_good_checkpoint(
    conform: Any, settings: Path, tmp_path: Path
) -> None:
    hot = ["--set", "optimizer.peak=1000", "--set", "optimizer.weight_decay=1e6"]
    result = conform("train", "--config", settings, "--out", "hot", "--no-pictures", *hot)
    assert result.exit_code == 1
    assert re.search(r"training diverged: the (loss|norm of the gradients) is (nan|inf) at step \d", result.stderr)
    assert "there was no checkpoint yet" in result.stderr
    assert "lower optimizer.peak" in result.stderr


def test_a_full_disk_is_a_sentence_and_what_was_written_is_whole(
    conform: Any, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = os.fsync, []

    def full(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink().name
        written.append(name)
        if "00000008.safetensors" in name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    result = conform("train", "--config", settings, "--out", "run", "--no-pictures")
    assert result.exit_code == 5
    assert "writing run/checkpoints/00000008.safetensors failed: No space left on device" in result.stderr
    assert "--resume" in result.stderr
    monkeypatch.setattr(os, "fsync", real)
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == [
        "00000004.safetensors", "best.safetensors",
    ]  # fmt: skip
    assert conform("train", "--resume", "run", "--no-pictures").exit_code == 0


@pytest.mark.parametrize("extra", [[], ["--ablate", "small"]], ids=["run", "ablation"])
def test_a_disk_that_is_full_from_the_start_is_told_as_such_and_the_same_command_goes_on(
    conform: Any, settings: Path, monkeypatch: pytest.MonkeyPatch, extra: list[str]
) -> None:
    """Would break if it were told as a wrong name, or if what is left of the folder were in the way afterwards."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    command = ["train", "--config", settings, "--out", "run", "--no-pictures", *extra]
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        result = conform(*command)
    assert result.exit_code == 5
    assert re.search(r"writing run/(config|baseline)\.toml failed: No space left on device", result.stderr)
    if not extra:
        assert conform(*command).exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on the size of files")
def test_a_checkpoint_that_no_longer_fits_leaves_the_one_before(conform: Any, trained: Path, tmp_path: Path) -> None:
    """As above, by the kernel: no file may grow over a limit that the next checkpoint exceeds."""
    import resource

    before = {path.name: path.read_bytes() for path in (trained / "checkpoints").iterdir()}
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (max(map(len, before.values())) // 2, old[1]))
    try:
        result = conform("train", "--resume", trained, "--steps", 16, "--no-pictures")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert result.exit_code == 5
    assert "checkpoints/00000016.safetensors failed: File too large" in result.stderr
    assert {path.name: path.read_bytes() for path in (trained / "checkpoints").iterdir()} == before
    assert conform("sample", trained, "--tokens", 4).exit_code == 0
    assert conform("train", "--resume", trained, "--steps", 16, "--no-pictures").exit_code == 0


def test_ctrl_c_keeps_the_run(settings: Path, tmp_path: Path, conform: Any) -> None:
    command = [sys.executable, "-P", "-m", "conformkit.cli", "train", "--config", str(settings), "--out", "run"]
    command += ["--steps", "100000", "--set", "training.eval_interval=5", "--no-pictures"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        while "step" not in (line := process.stdout.readline()) or "/100000" not in line:
            assert line, process.stderr
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    stopped = int(re.search(r"stopped at step (\d+); nothing is lost", said)[1])  # type: ignore[index]
    assert f"{stopped:08}.safetensors" in {path.name for path in (tmp_path / "run" / "checkpoints").iterdir()}
    again = conform("train", "--resume", "run", "--steps", stopped + 1, "--no-pictures")
    assert again.exit_code == 0


TABLE = """
title = "two sizes and a choice"
[[variant]]
axis = "depth"
name = "1 layer"
set = { "model.num_layers" = 1 }
[[variant]]
axis = "width"
name = "width 8"
set = { "model.d_model" = 8 }
[[variant]]
axis = "activation"
name = "ReLU <b>"
set = { "variant.activation" = "relu" }
"""


def test_a_table_of_variants_is_trained_and_compared(conform: Any, settings: Path, tmp_path: Path) -> None:
    (tmp_path / "table.toml").write_text(TABLE)
    command = ("train", "--config", settings, "--ablate", "table.toml", "--out", "study", "--no-pictures")
    result = conform(*command)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert [line.split(" · ")[1] for line in lines[:4]] == [
        "baseline: baseline", "depth: 1 layer", "width: width 8", "activation: ReLU <b>",
    ]  # fmt: skip
    assert lines[4].split() == ["axis", "variant", "parameters", "loss", "difference", "seconds"]
    assert "(standard error, 3 sizes)" in result.stdout
    page = (tmp_path / "study" / "report.html").read_text()
    assert "ReLU &lt;b&gt;" in page
    rows = [json.loads(path.read_text()) for path in (tmp_path / "study").glob("*/row.json")]
    assert len({row["parameters"] for row in rows}) == 3
    again = conform(*command)
    assert again.stdout.splitlines()[:4] == lines[:4]
    changed = conform(*command, "--seed", 5)
    assert changed.exit_code == 2
    assert "study is of another ablation" in changed.stderr


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("variant = 3", "without variants"),
        ("[[variant]]\nname = 'x'", "expected a table with axis, name and set"),
        ("[[variant]]\naxis = 'a'\nname = 'x'\nset = { 'model.d_model' = 0 }", "model.d_model is 0"),
        ("[[variant]]\naxis = 'a'\nname = 'x'\nset = {}\n" * 2, "with two variants of one name"),
        ("[[", "no TOML"),
    ],
    ids=["none", "fields", "value", "twice", "syntax"],
)
def test_a_table_that_is_none_is_refused_before_anything_is_trained(
    conform: Any, settings: Path, tmp_path: Path, table: str, says: str
) -> None:
    (tmp_path / "table.toml").write_text(table)
    result = conform("train", "--config", settings, "--ablate", "table.toml", "--out", "study")
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())
    assert not (tmp_path / "study").exists()


def test_without_matplotlib_the_page_says_how_to_get_pictures(
    conform: Any, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "available", lambda: False)
    result = conform("train", "--config", settings, "--out", "run")
    assert result.exit_code == 0
    assert "pip install 'conformkit[report]'" in result.stdout
    page = (tmp_path / "run" / "report.html").read_text()
    assert "pip install &#39;conformkit[report]&#39;" in page
    assert not list((tmp_path / "run").glob("*.png"))


def test_a_place_without_a_run_says_how_to_get_one(conform: Any) -> None:
    result = conform("sample", "nowhere")
    assert result.exit_code == 2
    assert "there is no nowhere; name the folder of a run of conform train, or a checkpoint" in result.stderr
    assert "conform train && conform sample runs/tiny" in result.stderr
