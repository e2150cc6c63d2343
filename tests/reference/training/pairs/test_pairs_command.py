"""`conform train` and `conform sample` with an encoder-decoder: what they write, and refusals as sentences."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from conformkit.reference.training.config import recipes
from conformkit.reference.training.pairs import writing
from tests.reference.training.pairs.conftest import SMALL


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def trained(conform: Any, settings: Path, tmp_path: Path) -> Path:
    result = conform("train", "--config", settings, "--out", "run", "--no-pictures", "-q")
    assert result.exit_code == 0, result.output
    return tmp_path / "run"


def test_recipes_of_every_task_are_there(conform: Any) -> None:
    listed = conform("train", "--recipes").stdout
    for name in ("copy", "reverse", "sort", "translation"):
        assert recipes()[name].data.task == name
        assert f"{name}: " in listed


def test_a_run_is_kept_in_its_folder(conform: Any, settings: Path, tmp_path: Path) -> None:
    result = conform("train", "--config", settings, "--steps", 8)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("5,353 parameters, vocabularies 9 and 9, 54 pairs to learn from, 6 to validate on")
    assert [line.split(" · ")[0] for line in lines[1:3]] == ["step 4/8", "step 8/8"]
    assert re.fullmatch(r"greedy: \d+\.\d% of held-out targets exactly right, \d+\.\d% of their tokens", lines[-2])
    folder = tmp_path / "runs" / "small"
    assert {path.name for path in folder.iterdir()} == {
        "attention", "attention.png", "checkpoints", "config.toml", "gradients.jsonl", "gradients.png", "history.png",
        "metrics.jsonl", "perplexity.png", "report.html", "samples.jsonl", "scores.json", "training.png",
    }  # fmt: skip
    assert "warmup = 3" in (folder / "config.toml").read_text()  # of 4 for 12 steps
    page = (folder / "report.html").read_text()
    assert page.count("data:image/png") == 5
    wanted = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    assert all(f"<pre>{row['source']}</pre>" in page for row in wanted)


def test_a_run_continues_for_more_steps(conform: Any, trained: Path) -> None:
    result = conform("train", "--resume", trained, "--steps", 16, "--no-pictures")
    assert result.exit_code == 0, result.output
    assert "step 16/16" in result.stdout


def test_sources_are_written_greedily_drawn_and_by_beams(conform: Any, trained: Path) -> None:
    greedy = conform("sample", trained, "--prompt", "abc")
    assert greedy.exit_code == 0
    assert re.fullmatch(r"abc → [a-e]*\n", greedy.stdout)
    assert conform("sample", trained).stdout.count("→") == 5
    beams = conform("sample", trained / "checkpoints" / "best.safetensors", "--prompt", "abc", "--beam", 3)
    scores = [float(line.split()[-1]) for line in beams.stdout.splitlines() if line.startswith("--- score")]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    drawn = [
        conform("sample", trained, "--prompt", "abc", "--temperature", 3, "--seed", n).stdout for n in (1, 1, 2, 3)
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) > 1
    unknown = conform("sample", trained, "--prompt", "axb")
    assert "'x' of 'axb' is not in the vocabulary" in unknown.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--prompt", ""], "is empty; name a text"),
        (["--prompt", "abcdeabcde"], "at most max_len = 8"),
        (["--top-k", "3"], "is for language models"),
        (["--repetition-penalty", "2"], "is for language models"),
        (["--length-penalty", "1"], "needs --beam"),
    ],
)
def test_what_an_encoder_decoder_can_not_do_is_a_sentence(
    conform: Any, trained: Path, options: list[str], says: str
) -> None:
    result = conform("sample", trained, *options)
    assert result.exit_code == 2
    assert says in " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.stderr).split())
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--corpus", "pairs.tsv"], "expected synthetic; only translation reads a file of pairs"),
        (["--corpus", "pairs.tsv", "--set", "data.task=translation"], "line 1 of the corpus pairs.tsv"),
        (["--set", "data.pairs=1000"], "fewer, or more letters"),
        (["--set", "model.block_size=4"], "expected at most model.block_size = 4"),
    ],
)
def test_a_corpus_that_does_not_fit_is_refused_before_a_folder_is_made(
    conform: Any, settings: Path, tmp_path: Path, options: list[str], says: str
) -> None:
    (tmp_path / "pairs.tsv").write_text("no tab here\n")
    result = conform("train", "--config", settings, *options)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())
    assert not (tmp_path / "runs").exists()


def test_without_sacrebleu_the_rest_is_told(
    conform: Any, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    assert writing.bleu(["a"], ["a"]) is None
    (tmp_path / "pairs.tsv").write_text("".join(f"{'one two'[:n]}\t{'un deux'[:n]}\n" for n in range(1, 8)))
    words = ["--set", "data.task=translation", "--set", "data.tokenizer=word", "--set", "data.min_frequency=1"]
    result = conform("train", "--config", settings, "--corpus", "pairs.tsv", "--no-pictures", *words)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "BLEU needs sacrebleu: pip install 'conformkit[translation]'"
