"""A run on pairs learns its task, resumes as if it had not stopped, and shows the model's own weights."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from conformkit.reference.checkpoints import read_checkpoint, save_checkpoint
from conformkit.reference.errors import CheckpointError
from conformkit.reference.loss import cross_entropy
from conformkit.reference.steps import IGNORED
from conformkit.reference.training import history, metrics
from conformkit.reference.training.config import TrainingConfig, with_changes
from conformkit.reference.training.loop import TrainingEnd, train
from conformkit.reference.training.pairs.session import PairsSession, begin_pairs, translator_from
from conformkit.reference.training.pairs.writing import write, write_beams
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.sessions import load_model, resume_run


def finish(session: Any, wanted: Callable[[], bool] = lambda: False) -> TrainingEnd:
    return train(session.run, session.folder, Silent(), wanted, session.sample, session.looked)


def numbers(session: Any) -> list[tuple[Any, ...]]:
    return [(one["kind"], one["step"], one["loss"]) for one in metrics.read_lines(session.folder.metrics)]


def same(one: Any, other: Any) -> bool:
    a, b = one.run.model.state_dict(), other.run.model.state_dict()
    return all(torch.equal(a[name], b[name]) for name in a)


@pytest.fixture
def whole(config: TrainingConfig, tmp_path: Path) -> PairsSession:
    session = begin_pairs(config, tmp_path / "whole")
    assert finish(session).end == "done"
    return session


def test_a_stopped_run_continues_exactly(whole: PairsSession, session: PairsSession) -> None:
    assert finish(session, lambda: session.run.step == 6).end == "interrupted"
    again = resume_run(session.folder.path, {})
    assert again.run.step == 6
    finish(again)
    assert same(again, whole)
    assert numbers(again) == numbers(whole)
    assert again.run.best == whole.run.best
    assert [step for step, _ in history.spread(again.folder)] == [4, 8, 12]


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from conformkit.reference.training import loop, sessions
from conformkit.reference.training.progress import Silent

torch.set_num_threads(1)
session = sessions.resume_run(Path(sys.argv[1]), {})

def kill():
    if session.run.step == 11:
        os.kill(os.getpid(), signal.SIGKILL)
    return False

loop.train(session.run, session.folder, Silent(), kill)
"""


@pytest.mark.full(guard="test_a_stopped_run_continues_exactly")
def test_a_killed_run_continues_exactly(whole: PairsSession, session: PairsSession) -> None:
    finish(session, lambda: session.run.step == 2)
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(session.folder.path)], capture_output=True, text=True, check=False,
        timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert died.returncode == -signal.SIGKILL, died.stderr
    again = resume_run(session.folder.path, {})
    assert again.run.step == 8  # the evaluation before
    finish(again)
    assert same(again, whole)
    assert numbers(again) == numbers(whole)


def test_what_is_learned_is_smoothed_and_what_is_validated_is_not(config: TrainingConfig, tmp_path: Path) -> None:
    plain = {"model.dropout": 0.0, "model.attention_dropout": 0.0, "model.embedding_dropout": 0.0}
    run = begin_pairs(with_changes(config, plain), tmp_path / "run").run
    torch.manual_seed(5)
    given, wanted = run.draw()
    expected = cross_entropy(run.model(*given), wanted, IGNORED, 0.1)
    torch.manual_seed(5)
    loss, _ = run.update()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    given, wanted = run.validation[0]
    run.validation = run.validation[:1]
    logits = run.model.eval()(*given)
    found = run.measured()
    assert found["loss"] == pytest.approx(cross_entropy(logits, wanted, IGNORED).item(), rel=1e-5)
    right = (logits.argmax(dim=-1) == wanted)[wanted != IGNORED].double().mean().item()
    assert found["accuracy"] == pytest.approx(right)


def test_the_rate_is_that_of_the_paper(session: PairsSession) -> None:
    finish(session)
    rates = [one["rate"] for one in metrics.read_lines(session.folder.metrics) if one["kind"] == "step"]
    assert rates == pytest.approx([16**-0.5 * min(n**-0.5, n * 4**-1.5) for n in range(1, 13)])


@pytest.mark.full(guard="test_what_is_learned_is_smoothed_and_what_is_validated_is_not")
def test_a_task_is_learned_and_its_scores_are_kept(config: TrainingConfig, tmp_path: Path) -> None:
    changes = {
        "data.task": "copy", "data.pairs": 400, "training.steps": 250, "training.eval_interval": 50,
        "training.batch_size": 32, "model.d_model": 32, "model.dropout": 0.0, "model.attention_dropout": 0.0,
        "model.embedding_dropout": 0.0, "optimizer.schedule": "cosine", "optimizer.peak": 0.01,
        "optimizer.warmup": 30, "samples.held_out": 20,
    }  # fmt: skip
    session = begin_pairs(with_changes(config, changes), tmp_path / "copy")
    finish(session)
    session.sample_best()
    scores = json.loads(session.folder.scores.read_text())
    assert scores["pairs"] == 20
    assert scores["greedy"]["tokens"] > 0.95
    assert scores["beam"]["tokens"] > 0.95
    assert session.scores()[0].startswith("greedy: ")
    rows = [row for row in metrics.read_lines(session.folder.samples) if "beam" in row]
    assert [row["wanted"] for row in rows] == [target for _, target in session.held_out]
    session.sample_best()  # once more, as after a resumed run: nothing is written twice
    assert len([row for row in metrics.read_lines(session.folder.samples) if "beam" in row]) == 20


def test_the_best_beam_is_at_least_as_probable_as_the_greedy_text(whole: PairsSession) -> None:
    model, sides = whole.run.model, whole.run.sides
    sources = [source for source, _ in whole.held_out]
    greedy = write(model, sides, sources)
    for source, text, beams in zip(sources, greedy, write_beams(model, sides, sources, 6, 0.0), strict=True):
        assert len(beams) == 6
        assert [score for _, score in beams] == sorted((score for _, score in beams), reverse=True)
        single = write_beams(model, sides, [source], 1, 0.0)[0]
        assert single[0][0] == text
        assert beams[0][1] >= single[0][1] - 1e-5


def test_another_runs_checkpoint_is_refused(session: PairsSession, tmp_path: Path) -> None:
    finish(session, lambda: session.run.step == 1)
    with pytest.raises(CheckpointError, match="of another vocabulary"):
        resume_run(session.folder.path, {"data.symbols": 4})
    with pytest.raises(CheckpointError, match="of a run on another text"):
        resume_run(session.folder.path, {"data.pairs": 61})
    run, path = session.run, tmp_path / "other.safetensors"
    save_checkpoint(path, run.model, run.optimizer, 1, {**run.state(), "tokenizer": "{}"})
    with pytest.raises(CheckpointError, match="of another kind"):
        load_model(path)


def test_a_checkpoint_gives_the_model_back(whole: PairsSession) -> None:
    best = translator_from(read_checkpoint(whole.folder.best))
    assert best.step == whole.run.best[0]  # type: ignore[index]
    assert not best.model.training
    assert math.isfinite(whole.run.best[1])  # type: ignore[index]


def test_a_share_of_the_decoders_input_becomes_its_own_guesses(config: TrainingConfig, tmp_path: Path) -> None:
    """Would break if guesses stood one place off, replaced padding or the first id, or were there from the start."""
    run = begin_pairs(with_changes(config, {"training.own_ids": 1.0}), tmp_path / "own").run
    (src, tgt), _ = run.buckets.draw(8, run.device)
    assert torch.equal(run._guessed(src, tgt, 0.0), tgt)
    mixed = run._guessed(src, tgt, 1.0)
    best = run.model.eval()(src, tgt).argmax(dim=-1)
    assert torch.equal(mixed[:, 0], tgt[:, 0])
    assert torch.equal(mixed[:, 1:], torch.where(tgt[:, 1:] == run.model.pad_id, tgt[:, 1:], best[:, :-1]))
    torch.manual_seed(3)
    (_, first), _ = run.draw()
    torch.manual_seed(3)
    assert torch.equal(
        first, run.buckets.draw(config.training.batch_size, run.device)[0][1]
    )  # at step 0 the share is 0
    assert [run.update()[0].isfinite().item() for _ in range(config.training.steps)]
    torch.manual_seed(3)
    (_, last), _ = run.draw()
    assert not torch.equal(last, first)


def test_a_session_says_what_is_about_to_be_trained(session: PairsSession) -> None:
    parameters = sum(parameter.numel() for parameter in session.run.model.parameters())
    source, target = (side.vocab_size for side in session.run.sides)
    assert session.floor is None
    assert session.description == (
        f"{parameters:,} parameters, vocabularies {source} and {target}, {len(session.corpus.train)} pairs to learn "
        f"from, {len(session.corpus.val)} to validate on, 12 steps of 4 pairs"
    )


def test_pairs_that_are_shown_are_spread_over_those_held_out(session: PairsSession) -> None:
    """Would break if the first ones, or only long ones, were shown."""
    val = session.corpus.val
    count = min(5, len(val))
    assert session.held_out == [val[number * len(val) // count] for number in range(count)]
    lengths = sorted(len(source) for source, _ in session.held_out)
    assert len(session.shown[0]) == lengths[len(lengths) // 2]


@pytest.mark.parametrize("bleu", [None, 12.3456])
def test_scores_are_told_as_lines(session: PairsSession, bleu: float | None) -> None:
    one = {"exact": 0.25, "tokens": 0.5, "bleu": bleu}
    session.folder.scores.write_text(json.dumps({"greedy": one, "beam": {**one, "exact": 1.0}}), encoding="utf-8")
    told = "" if bleu is None else ", BLEU 12.35"
    assert session.scores()[:2] == [
        f"greedy: 25.0% of held-out targets exactly right, 50.0% of their tokens{told}",
        f"beam: 100.0% of held-out targets exactly right, 50.0% of their tokens{told}",
    ]
    assert len(session.scores()) == 2 + (bleu is None and session.run.sides[1].kind == "word")
