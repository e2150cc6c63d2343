"""BERT and the vision transformer train by command, resume exactly, and their batches are what the papers say."""

from __future__ import annotations

import sys
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import pytest
import torch

from conformkit.reference.steps import IGNORED
from conformkit.reference.training import history, metrics
from conformkit.reference.training.config import TrainingConfig, recipe, with_changes
from conformkit.reference.training.encoders.digits import MissingDigitsError, load_digits
from conformkit.reference.training.encoders.masked import CLS, MASK, SEP, begin_masked, fill, hide_words, word_numbers
from conformkit.reference.training.encoders.trained import SPECIAL
from conformkit.reference.training.loop import TrainingEnd, train
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.sessions import begin_run, resume_run
from tests.needs import optional

TEXT = "the quick brown fox jumps over the lazy dog.\n" * 60
SMALL = {
    "model.d_model": 16, "model.num_heads": 2, "model.num_layers": 1, "model.d_ff": 24, "training.steps": 8,
    "training.batch_size": 8, "training.eval_interval": 4, "training.eval_batches": 2, "optimizer.warmup": 2,
    "optimizer.floor": 0.0,
}  # fmt: skip


@pytest.fixture
def bert(tmp_path: Path) -> TrainingConfig:
    (tmp_path / "corpus.txt").write_text(TEXT)
    changes = {"data.corpus": str(tmp_path / "corpus.txt"), "data.vocab_size": 270, "model.block_size": 21}
    return with_changes(recipe("bert-tiny"), {**SMALL, **changes})


@pytest.fixture
def vit() -> TrainingConfig:
    optional("sklearn")
    return with_changes(recipe("vit-digits"), SMALL)


@pytest.fixture(params=["bert", "vit"])
def config(request: pytest.FixtureRequest) -> TrainingConfig:
    found: TrainingConfig = request.getfixturevalue(request.param)
    return found


def finish(session: Any, stop: int = 0) -> TrainingEnd:
    return train(
        session.run, session.folder, Silent(), lambda: session.run.step == stop, session.sample, session.looked
    )


def test_a_stopped_run_continues_exactly(config: TrainingConfig, tmp_path: Path) -> None:
    whole = begin_run(config, tmp_path / "whole")
    finish(whole)
    stopped = begin_run(config, tmp_path / "stopped")
    assert finish(stopped, stop=3).end == "interrupted"
    again = resume_run(tmp_path / "stopped", {})
    finish(again)
    for a, b in zip(again.run.model.parameters(), whole.run.model.parameters(), strict=True):
        assert torch.equal(a, b)
    losses = [[(r["step"], r["loss"]) for r in metrics.read_lines(s.folder.metrics)] for s in (again, whole)]
    assert losses[0] == losses[1]


def test_a_run_that_died_before_its_first_checkpoint_begins_again(config: TrainingConfig, tmp_path: Path) -> None:
    """Would break if a folder without a checkpoint could be neither resumed nor used again."""

    class DiedError(Exception):
        pass

    def die() -> bool:
        if died.run.step == 2:
            raise DiedError
        return False

    whole = begin_run(config, tmp_path / "whole")
    finish(whole)
    died = begin_run(config, tmp_path / "died")
    with pytest.raises(DiedError):
        train(died.run, died.folder, Silent(), die, died.sample, died.looked)
    died.folder.metrics.write_text('{"kind": "step", "step": 1, "loss": 9.0}\n')
    assert not died.folder.by_step()
    again = resume_run(died.folder.path, {})
    assert not metrics.read_lines(again.folder.metrics)
    finish(again)
    for a, b in zip(again.run.model.parameters(), whole.run.model.parameters(), strict=True):
        assert torch.equal(a, b)
    losses = [[(r["step"], r["loss"]) for r in metrics.read_lines(s.folder.metrics)] for s in (again, whole)]
    assert losses[0] == losses[1]


def test_a_row_is_two_parts_between_marks_and_the_second_follows_half_of_the_time(
    bert: TrainingConfig, tmp_path: Path
) -> None:
    run = begin_masked(with_changes(bert, {"training.batch_size": 400}), tmp_path / "run").run
    torch.manual_seed(1)
    (ids, segments), wanted = run.draw()
    assert ids.shape == segments.shape == wanted.shape == (400, 21)
    assert (ids[:, 0] == CLS).all()
    assert (ids[:, [10, 20]] == SEP).all()
    assert segments[0].tolist() == [0] * 11 + [1] * 10
    assert set(wanted[:, 0].tolist()) == {0, 1}
    assert 150 < int(wanted[:, 0].sum()) < 250  # of 400, five standard deviations
    assert (wanted[:, [10, 20]] == IGNORED).all()
    original = torch.where(wanted == IGNORED, ids, wanted)
    text = run.ids.tolist()
    joined = [str([*row[1:10], *row[11:20]])[1:-1] for row in original.tolist()]
    whole = str(text)[1:-1]
    follows = [line in whole for line in joined]
    assert all(found for found, label in zip(follows, wanted[:, 0].tolist(), strict=True) if label == 0)
    assert not all(follows)


def test_all_pieces_of_a_word_are_hidden_together_and_at_their_rate() -> None:
    torch.manual_seed(0)
    ids = torch.arange(4, 34).repeat(400, 1)
    words = torch.arange(10).repeat_interleave(3).repeat(400, 1)
    words[:, :3] = -1
    inputs, labels = hide_words(ids, words, 40, 0.15)
    chosen = labels != IGNORED
    by_word = chosen.reshape(400, 10, 3)
    assert (by_word.all(dim=-1) == by_word.any(dim=-1)).all()
    assert not by_word[:, 0].any()
    assert by_word[:, 1:, 0].double().mean().item() == pytest.approx(0.15, abs=0.03)  # 3,600 draws, five deviations
    assert torch.equal(labels[chosen], ids[chosen])
    assert torch.equal(inputs[~chosen], ids[~chosen])
    fates = inputs[chosen]
    assert (fates == MASK).double().mean().item() == pytest.approx(0.8, abs=0.09)
    assert (fates == ids[chosen]).double().mean().item() == pytest.approx(0.1 + 0.1 / 36, abs=0.07)
    assert int(inputs.min()) >= MASK
    hidden = (inputs == MASK).reshape(400, 10, 3)
    assert (hidden.all(dim=-1) == hidden.any(dim=-1)).all()


def test_a_word_goes_on_where_letters_touch() -> None:
    assert word_numbers([" the", " qu", "ick", " fox", ".", "\n", "Then", "ce"]) == [0, 1, 1, 2, 3, 4, 5, 5]


def test_who_looks_at_whom_is_kept_at_each_evaluation(config: TrainingConfig, tmp_path: Path) -> None:
    session = begin_run(config, tmp_path / "run")
    finish(session)
    kept = history.spread(session.folder)
    assert [step for step, _ in kept] == [4, 8]
    length = session.run.config.model.block_size
    assert all(weights.shape == (1, length, length) for _, weights in kept)
    assert all(torch.allclose(weights.float().sum(-1), torch.ones(1, length), atol=1e-2) for _, weights in kept)
    assert not torch.equal(kept[0][1], kept[1][1])


def test_validation_counts_hidden_ids_and_next_sentences(bert: TrainingConfig, tmp_path: Path) -> None:
    run = begin_masked(bert, tmp_path / "run").run
    found = run.measured()
    assert set(found) == {"loss", "accuracy", "next_sentence"}
    right = total = 0
    for (ids, segments), wanted in run.validation:
        logits, _ = run.model.eval()(ids, segments)
        chosen = wanted[:, 1:] != IGNORED
        right += int((logits[:, 1:].argmax(dim=-1) == wanted[:, 1:])[chosen].sum())
        total += int(chosen.sum())
    assert found["accuracy"] == right / total
    assert run.measured() == found


@pytest.mark.full(guard="test_validation_counts_hidden_ids_and_next_sentences")
def test_bert_learns_what_is_hidden(bert: TrainingConfig, tmp_path: Path) -> None:
    changes = {
        "training.steps": 450, "training.eval_interval": 150, "training.batch_size": 16, "model.d_model": 64,
        "model.d_ff": 128, "optimizer.peak": 1e-3, "optimizer.schedule": "constant", "optimizer.warmup": 50,
        "model.dropout": 0.0, "model.attention_dropout": 0.0, "data.whole_words": False, "data.vocab_size": 300,
    }  # fmt: skip
    session = begin_run(with_changes(bert, changes), tmp_path / "run")
    before = session.run.measured()["accuracy"]
    finish(session)
    after = session.run.measured()["accuracy"]
    assert after > 0.6 > 3 * before  # one sentence, again and again; its most frequent id is under a fifth
    guesses = fill(session.run.model, session.run.tokenizer, "the quick brown[MASK] jumps")
    assert len(guesses) == 1
    assert len(guesses[0]) == 5
    assert guesses[0][0][1] >= guesses[0][1][1]


@pytest.mark.full(guard="test_a_row_is_two_parts_between_marks_and_the_second_follows_half_of_the_time")
def test_bert_learns_what_follows(bert: TrainingConfig, tmp_path: Path) -> None:
    """Would break if the pooled row could not learn from both sides of the cut, where the alphabet tells all."""
    (tmp_path / "alphabet.txt").write_text(f"{ascii_lowercase}\n" * 400)
    changes = {
        "data.corpus": str(tmp_path / "alphabet.txt"), "data.tokenizer": "char", "data.whole_words": False,
        "model.block_size": 9, "model.d_model": 32, "training.steps": 250, "training.eval_interval": 250,
        "training.batch_size": 64, "optimizer.peak": 3e-3, "optimizer.schedule": "constant", "optimizer.warmup": 20,
    }  # fmt: skip
    session = begin_run(with_changes(bert, changes), tmp_path / "run")
    finish(session)
    assert session.run.measured()["next_sentence"] > 0.7  # half is chance


def test_a_vision_transformer_learns_digits(vit: TrainingConfig, tmp_path: Path) -> None:
    changes = {"training.steps": 150, "training.eval_interval": 150, "training.batch_size": 32, "model.d_model": 32,
               "model.d_ff": 64, "optimizer.peak": 4e-3}  # fmt: skip
    session = begin_run(with_changes(vit, changes), tmp_path / "run")
    finish(session)
    assert session.run.measured()["accuracy"] > 0.5  # 0.1 by chance


def test_held_out_digits_are_the_last_ones() -> None:
    optional("sklearn")
    found = load_digits(0.8)
    assert found.train[0].shape == (1437, 1, 8, 8)
    assert found.val[1].shape == (360,)
    assert 0 <= float(found.train[0].min()) < float(found.train[0].max()) == 1


def small(tmp_path: Path) -> list[str]:
    return [word for name, value in SMALL.items() for word in ("--set", f"{name}={value}")]


def test_bert_by_command(conform: Any, tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text(TEXT)
    options = ["--corpus", "corpus.txt", "--set", "data.vocab_size=270", *small(tmp_path)]
    result = conform("train", "--recipe", "bert-tiny", "--out", "b", *options, "--set", "model.block_size=21")
    assert result.exit_code == 0, result.output
    assert "hidden ids: " in result.stdout
    assert "; next sentence: " in result.stdout
    page = (tmp_path / "b" / "report.html").read_text()
    assert "next_sentence" in page
    assert page.count("data:image/png") == 4
    assert (tmp_path / "b" / "history.png").exists()
    assert " tokens/s" in result.stdout
    filled = conform("sample", "b", "--prompt", "the quick [MASK] fox [MASK]")
    assert filled.stdout.count("[MASK] 1: ") == filled.stdout.count("[MASK] 2: ") == 1
    assert conform("sample", "b", "--prompt", "no mark").exit_code == 2
    assert conform("sample", "b").stdout.count("; there was ") == 5  # as `conform train` prints it
    looked = conform("inspect", "b")
    assert "layer 1, head 2" in looked.stdout
    assert "held-out rows" in looked.stdout
    short = conform("train", "--recipe", "bert-tiny", "--out", "c", *options, "--set", "model.block_size=4")
    assert short.exit_code == 2
    assert "at least 5" in short.stderr
    assert not (tmp_path / "c").exists()


@pytest.mark.full(guard="test_bert_by_command")
def test_digits_by_command(conform: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    optional("sklearn")
    result = conform("train", "--recipe", "vit-digits", "--out", "v", *small(tmp_path))
    assert result.exit_code == 0, result.output
    assert "held-out images: " in result.stdout
    assert " images/s" in result.stdout
    assert conform("sample", "v").stdout.count("digit ") == 10
    assert "layer 1, head 2" in conform("inspect", "v").stdout
    wrong = conform("train", "--recipe", "vit-digits", "--out", "w", "--set", "model.patch_size=4")
    assert wrong.exit_code == 2
    assert "expected 5: the patches, and what is added" in wrong.stderr
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingDigitsError, match="pip install 'conformkit"):
        load_digits(0.8)
    missing = conform("train", "--recipe", "vit-digits", "--out", "w")
    assert missing.exit_code == 2
    assert "pip install 'conformkit[digits]'" in missing.stderr
    assert SPECIAL == 4
