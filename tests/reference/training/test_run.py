"""A run continues exactly where it stopped, keeps its best checkpoint, and says why it ends."""

from __future__ import annotations

import itertools
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
from conformkit.reference.training import folder as folder_module
from conformkit.reference.training import metrics
from conformkit.reference.training.config import TrainingConfig, with_changes
from conformkit.reference.training.folder import FolderError, RunFolder
from conformkit.reference.training.interrupts import stopping
from conformkit.reference.training.loop import DivergedError, TrainingEnd, train
from conformkit.reference.training.progress import Silent
from conformkit.reference.training.run import validation_batches
from conformkit.reference.training.session import TrainingSession, begin, load_trained
from conformkit.reference.training.sessions import resume_run

Weights = dict[str, torch.Tensor]


def finish(session: TrainingSession, wanted: Callable[[], bool] = lambda: False) -> TrainingEnd:
    return train(session.run, session.folder, Silent(), wanted, session.sample)


def weights(session: TrainingSession) -> Weights:
    return {name: value.clone() for name, value in session.run.model.state_dict().items()}


def same(a: Weights, b: Weights) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def losses(folder: RunFolder) -> list[tuple[object, ...]]:
    return [(record["kind"], record["step"], record["loss"]) for record in metrics.read_lines(folder.metrics)]


def after(steps: int) -> Callable[[], bool]:
    """Return a callback that requests an end after a number of updates."""
    counted = iter(range(1, steps + 1))
    return lambda: next(counted) == steps


@pytest.fixture
def whole(config: TrainingConfig, tmp_path: Path) -> TrainingSession:
    """A run that was never stopped."""
    session = begin(config, tmp_path / "whole")
    assert finish(session) == TrainingEnd("done", 12, session.run.best)
    return session


@pytest.mark.parametrize("steps", [1, 4, 6])
def test_a_stopped_run_continues_exactly(whole: TrainingSession, session: TrainingSession, steps: int) -> None:
    assert finish(session, after(steps)).end == "interrupted"
    again = resume_run(session.folder.path, {})
    assert again.run.step == steps
    finish(again)
    assert same(weights(again), weights(whole))
    assert losses(again.folder) == losses(whole.folder)
    assert metrics.read_lines(again.folder.gradients) == metrics.read_lines(whole.folder.gradients)
    assert again.run.best == whole.run.best


def test_gradients_are_kept_by_parameter_as_they_were_before_clipping(config: TrainingConfig, tmp_path: Path) -> None:
    """Would break if clipped gradients were kept, or those of another step."""
    session = begin(with_changes(config, {"optimizer.max_norm": 0.01}), tmp_path / "run")
    finish(session)
    kept = {one["step"]: one["norms"] for one in metrics.read_lines(session.folder.gradients)}
    assert list(kept) == [1, 4, 8, 12]
    assert list(kept[8]) == [name for name, _ in session.run.model.named_parameters()]
    norms = {one["step"]: one["norm"] for one in metrics.read_lines(session.folder.metrics) if one["kind"] == "step"}
    for step, found in kept.items():
        assert norms[step] > 0.01
        assert math.hypot(*found.values()) == pytest.approx(norms[step], rel=1e-4)


KILLED = """
import os, signal, sys
import torch
from pathlib import Path
from conformkit.reference.training import loop, sessions
from conformkit.reference.training.progress import Silent

torch.set_num_threads(1)
run = sessions.resume_run(Path(sys.argv[1]), {})

def kill():
    if run.run.step == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return False

loop.train(run.run, run.folder, Silent(), kill)
"""


@pytest.mark.full(guard="test_ctrl_c_keeps_the_run")
def test_a_killed_run_continues_exactly(whole: TrainingSession, session: TrainingSession) -> None:
    finish(session, after(2))
    command = [sys.executable, "-c", KILLED, str(session.folder.path), "11"]
    died = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert died.returncode == -signal.SIGKILL, died.stderr
    again = resume_run(session.folder.path, {})
    assert again.run.step == 8  # the evaluation before
    finish(again)
    assert same(weights(again), weights(whole))
    assert losses(again.folder) == losses(whole.folder)


def test_the_seed_is_the_run(config: TrainingConfig, whole: TrainingSession, tmp_path: Path) -> None:
    again = begin(config, tmp_path / "again")
    finish(again)
    other = begin(with_changes(config, {"training.seed": 1}), tmp_path / "other")
    finish(other)
    assert same(weights(again), weights(whole))
    assert losses(again.folder) == losses(whole.folder)
    assert not same(weights(other), weights(whole))


def test_samples_in_between_change_no_run(config: TrainingConfig, whole: TrainingSession, tmp_path: Path) -> None:
    chatty = begin(with_changes(config, {"samples.interval": 3}), tmp_path / "chatty")
    finish(chatty)
    assert same(weights(chatty), weights(whole))
    found = metrics.read_lines(chatty.folder.samples)
    assert [(record["step"], record["temperature"]) for record in found[:3]] == [(3, 0.0), (3, 1.0), (6, 0.0)]
    assert all(len(record["text"]) == 6 and record["prompt"] == chatty.beginning for record in found)


def test_accumulated_batches_are_as_one_large_batch(config: TrainingConfig, tmp_path: Path) -> None:
    plain = with_changes(config, {"model.dropout": 0.0, "training.batch_size": 8})
    parts = with_changes(plain, {"training.batch_size": 4, "training.accumulate": 2})
    found = []
    for name, changed in {"one": plain, "two": parts}.items():
        run = begin(changed, tmp_path / name).run
        assert run.tokens_a_step == 64
        found.append([run.update() for _ in range(5)])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-6)


def test_the_last_two_checkpoints_and_the_best_stay(session: TrainingSession) -> None:
    finish(session)
    names = sorted(path.name for path in session.folder.checkpoints.iterdir())
    assert names == ["00000008.safetensors", "00000012.safetensors", "best.safetensors"]
    evaluations = {step: loss for kind, step, loss in losses(session.folder) if kind == "evaluation"}
    best = min(evaluations, key=lambda step: evaluations[step])  # type: ignore[arg-type, return-value]
    assert session.run.best == (best, evaluations[best])
    assert read_checkpoint(session.folder.best).step == best
    assert load_trained(session.folder.path).step == best


def scripted(monkeypatch: pytest.MonkeyPatch, found: list[float]) -> None:
    left = iter(found)
    monkeypatch.setattr("conformkit.reference.training.run.evaluate", lambda *_: next(left))


def test_the_best_is_kept_as_it_was(session: TrainingSession, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, [3.0, 1.0, 2.0])
    finish(session)
    best = load_trained(session.folder.path)
    assert best.step == 8
    assert not same(best.model.state_dict(), weights(session))


def test_training_stops_when_the_loss_no_longer_falls(
    config: TrainingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, [3.0, 2.0, 2.0, 2.5, 1.0])
    changed = with_changes(config, {"training.steps": 40, "training.patience": 2})
    assert finish(begin(changed, tmp_path / "early")) == TrainingEnd("early", 16, (8, 2.0))


def test_a_loss_that_is_not_finite_ends_the_run_and_the_last_good_checkpoint_stays(session: TrainingSession) -> None:
    def poison() -> bool:
        if session.run.step == 6:
            with torch.no_grad():
                session.run.model.head.bias.fill_(math.nan)
        return False

    with pytest.raises(DivergedError, match="the loss is nan at step 7") as caught:
        finish(session, poison)
    assert caught.value.kept.endswith("00000004.safetensors")
    assert resume_run(session.folder.path, {}).run.step == 4
    assert max(record["step"] for record in metrics.read_lines(session.folder.metrics)) == 4


def test_non_finite_gradients_make_no_checkpoint(session: TrainingSession, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> torch.Tensor:
        return torch.tensor(math.inf)

    monkeypatch.setattr("conformkit.reference.training.run.clip_grad_norm", broken)
    with pytest.raises(DivergedError, match="the norm of the gradients is inf at step 1"):
        finish(session)
    assert session.folder.by_step() == []


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.unlink()  # the best one may be the same file
    path.write_bytes(content)


def test_a_damaged_checkpoint_is_refused_and_the_one_before_is_used(
    whole: TrainingSession, session: TrainingSession
) -> None:
    finish(session)
    damage(session.folder.by_step()[-1])
    with pytest.raises(CheckpointError, match=r"00000012\.safetensors is damaged or changed"):
        resume_run(session.folder.path, {})
    again = resume_run(session.folder.path, {}, session.folder.by_step()[-2])
    finish(again)
    assert same(weights(again), weights(whole))
    assert read_checkpoint(session.folder.by_step()[-1]).step == 12


def test_another_text_or_vocabulary_is_refused(session: TrainingSession, corpus: Path) -> None:
    finish(session, after(1))
    text = corpus.read_text()
    corpus.write_text(text[1:] + text[0])
    with pytest.raises(CheckpointError, match="of a run on another text, expected the text that it was trained on"):
        resume_run(session.folder.path, {})
    corpus.write_text(text)
    run = session.run
    state = run.state() | {"tokenizer": '{"kind": "char", "characters": "abc"}'}
    save_checkpoint(session.folder.best, run.model, run.optimizer, 1, state)
    with pytest.raises(CheckpointError, match=r"another model's: its embedding.weight has shape \(29, 16\)"):
        load_trained(session.folder.best)
    save_checkpoint(session.folder.best, run.model, run.optimizer, 1)
    with pytest.raises(CheckpointError, match="without a tokenizer"):
        load_trained(session.folder.best)


def test_a_folder_that_is_taken_or_none_is_refused(
    session: TrainingSession, config: TrainingConfig, tmp_path: Path
) -> None:
    with pytest.raises(FolderError, match="run is there already, expected a new name, or --resume"):
        begin(config, session.folder.path)
    with pytest.raises(FolderError, match="no folder of a run"):
        resume_run(tmp_path, {})
    with pytest.raises(FolderError, match="a run without a checkpoint"):
        load_trained(session.folder.path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderError, match="not writable"):
        begin(config, tmp_path / "file" / "run")


def test_a_run_that_ended_while_its_folder_was_made_can_be_begun_or_resumed(
    config: TrainingConfig, whole: TrainingSession, tmp_path: Path
) -> None:
    """Would break if a killed process left a folder in which a run can neither begin nor resume."""
    empty, draft, bare = (tmp_path / name for name in ("empty", "draft", "bare"))
    for folder in (empty, draft, bare):
        folder.mkdir()
    (draft / ".config.toml.0123abcd").write_text("[da")
    (bare / "config.toml").write_bytes(whole.folder.config_file.read_bytes())
    for start in (lambda: begin(config, empty), lambda: begin(config, draft), lambda: resume_run(bare, {})):
        session = start()
        finish(session)
        assert same(weights(session), weights(whole))
        assert losses(session.folder) == losses(whole.folder)
    assert not list(tmp_path.rglob(".*"))


class Killed(BaseException):
    """Stands for SIGKILL: nothing handles it."""


def kept(folder: RunFolder) -> dict[str, object]:
    """Return all that a run wrote, without times: lines, steps and numbers of checkpoints, and names of the rest."""
    found: dict[str, object] = {}
    for path in sorted(path for path in folder.path.rglob("*") if path.is_file()):
        name = str(path.relative_to(folder.path))
        if path.suffix == ".jsonl":
            found[name] = [{k: v for k, v in line.items() if k != "seconds"} for line in metrics.read_lines(path)]
        elif path.suffix == ".safetensors":
            saved = read_checkpoint(path)
            found[name] = (saved.step, {key: value.tolist() for key, value in saved.weights.items()})
        else:
            found[name] = None
    return found


MOMENTS = [
    *((folder_module, "save_checkpoint", call) for call in (1, 2, 3)),
    *((folder_module, "_same_file", call) for call in (1, 2, 3)),
    *((TrainingSession, "looked", call) for call in (1, 2, 3)),
    *((TrainingSession, "sample", call) for call in (1, 2, 3)),
    *((metrics, "append", call) for call in (1, 2, 5)),
    (Path, "unlink", 1),
]


@pytest.mark.parametrize(("owner", "name", "call"), MOMENTS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_run_that_is_killed_between_two_files_lacks_nothing_after_it_resumes(
    config: TrainingConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int
) -> None:
    """Would break if a file of a step were written after its checkpoint, or the best checkpoint were lost."""
    chatty = with_changes(config, {"samples.interval": 4})

    def trained(session: TrainingSession) -> dict[str, object]:
        train(session.run, session.folder, Silent(), sample=session.sample, looked=session.looked)
        session.sample_best()
        return kept(session.folder)

    wanted = trained(begin(chatty, tmp_path / "whole"))
    real, calls = getattr(owner, name), itertools.count(1)

    def killed(*given: Any, **named: Any) -> Any:
        if next(calls) == call:
            raise Killed
        return real(*given, **named)

    session = begin(chatty, tmp_path / "killed")
    with monkeypatch.context() as patched:
        patched.setattr(owner, name, killed)
        with pytest.raises(Killed):
            trained(session)
    assert trained(resume_run(tmp_path / "killed", {})) == wanted


def test_what_a_killed_run_left_half_written_is_dropped_when_it_resumes(session: TrainingSession) -> None:
    """Would break if each kill left a part of a checkpoint in the folder for good."""
    finish(session, after(2))
    half = session.folder.checkpoints / ".00000008.safetensors.0123abcd"
    half.write_bytes(b"half")
    own = session.folder.path / ".note"
    own.write_text("mine")
    resume_run(session.folder.path, {})
    assert not half.exists()
    assert own.exists()


def test_lines_that_were_cut_off_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    metrics.append(path, [{"step": 1}, {"step": 2}, {"step": 3}])
    with path.open("a") as stream:
        stream.write('{"step": 4, "lo')
    assert metrics.read_lines(path) == [{"step": 1}, {"step": 2}, {"step": 3}]
    metrics.cut_after(path, 2)
    metrics.append(path, [{"step": 3}])
    assert path.read_text().splitlines() == ['{"step": 1}', '{"step": 2}', '{"step": 3}']
    assert metrics.read_lines(tmp_path / "none") == []


def test_validation_windows_are_spread_over_the_text_and_do_not_overlap(config: TrainingConfig) -> None:
    ids = torch.arange(403)
    batches = validation_batches(ids, config)  # 2 batches of 4 windows of 8
    x = torch.cat([x for x, _ in batches])
    assert x.shape == (8, 8)
    assert all(torch.equal(y, x + 1) for x, y in batches)
    assert len(set(x.flatten().tolist())) == 64
    assert x[0, 0] == 0
    assert x[-1, 0] > 300
    short = validation_batches(torch.arange(30), config)
    assert torch.cat([x for x, _ in short]).shape == (3, 8)


def test_the_first_signal_asks_and_the_second_stops() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stopping() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGINT)
        assert asked()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_it_learns_what_there_is_to_learn(config: TrainingConfig, tmp_path: Path) -> None:
    changed = with_changes(config, {"training.steps": 150, "training.eval_interval": 150, "model.dropout": 0.0})
    learned = begin(changed, tmp_path / "learned")
    finish(learned)
    assert learned.run.best is not None
    assert learned.run.best[1] < 1.0  # 29 characters, ln 29 = 3.4
