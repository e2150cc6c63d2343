"""The folder of a run: its configuration, its measurements, and checkpoints to resume from.

config.toml          the whole configuration
metrics.jsonl        a line a step and an evaluation
gradients.jsonl      the norm of each parameter's gradient, a line for the first step and each evaluation
samples.jsonl        a line a sample
scores.json          of a task: how good what the best model wrote is
attention/           who looked at whom, at a few steps of the run
checkpoints/         best.safetensors, and the last two by their steps: 00000250.safetensors, …
report.html, *.png   pictures of all that
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path

import tomli_w

from conformkit.reference.checkpoints import replace_file, save_checkpoint
from conformkit.reference.errors import RefusalError
from conformkit.reference.training import metrics
from conformkit.reference.training.config import TrainingConfig, read_config
from conformkit.reference.training.run import Run

__all__ = ["FolderError", "RunFolder"]

KEPT = 2
"""Number of checkpoints to keep: if the last one can't be read, there is the one before."""

_DRAFT = re.compile(r"\..+\.(toml|jsonl?|safetensors|npy|html|png)\.[0-9a-f]{8}")
"""What `replace_file` writes before it renames it."""


class FolderError(RefusalError):
    """A folder is not that of a run, or can't become one."""


class RunFolder:
    """Paths in a run's folder, and what is written there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config_file = path / "config.toml"
        self.metrics = path / "metrics.jsonl"
        self.gradients = path / "gradients.jsonl"
        self.samples = path / "samples.jsonl"
        self.checkpoints = path / "checkpoints"
        self.best = self.checkpoints / "best.safetensors"
        self.report = path / "report.html"
        self.scores = path / "scores.json"
        self.attention = path / "attention"

    @classmethod
    def create(cls, path: Path, config: TrainingConfig, *, again: bool = False) -> RunFolder:
        """Make a new folder, or use that of a run again, without what was measured there.

        The configuration is written first: with it a run can be resumed, and without it there is nothing of a run, so
        one that ends in between is begun by the same command.

        Raises: FolderError where there is a folder with something in it, or none can be made; OSError where it can't be
                written, as on a full disk.
        """
        folder = cls(path)
        if not again and path.exists() and (not path.is_dir() or set(path.iterdir()) - set(folder.drafts())):
            raise FolderError(str(path), "there already", "a new name, or --resume to go on with it")
        try:
            path.mkdir(parents=True, exist_ok=True)
            folder._drop_drafts()
            if again:
                folder.rewind(-1)
            replace_file(folder.config_file, tomli_w.dumps(config.as_document()).encode())
            folder.checkpoints.mkdir(exist_ok=True)
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise FolderError(str(path), f"not writable ({error.strerror})", "another place") from error
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Return the folder of a run that was begun. Raises FolderError."""
        folder = cls(path)
        if not folder.config_file.is_file():
            raise FolderError(str(path), "no folder of a run", "one that holds a config.toml")
        return folder

    @property
    def config(self) -> TrainingConfig:
        """The configuration that the run was begun with."""
        return read_config(self.config_file)

    @property
    def newest(self) -> Path:
        """The checkpoint from which the run resumes. Raises FolderError where there is none yet."""
        found = self.by_step()
        if not found:
            raise FolderError(str(self.path), "a run without a checkpoint", "one that got as far as an evaluation")
        return found[-1]

    def by_step(self) -> list[Path]:
        """Return the checkpoints from which the run can resume, the newest last."""
        return sorted(path for path in self.checkpoints.glob("*.safetensors") if path.stem.isdigit())

    def drafts(self) -> list[Path]:
        """Return files that were not whole yet when the process was killed: nothing reads them."""
        folders = (self.path, self.checkpoints, self.attention)
        return [path for folder in folders for path in folder.glob(".*") if _DRAFT.fullmatch(path.name)]

    def _drop_drafts(self) -> None:
        for draft in self.drafts():
            draft.unlink(missing_ok=True)

    def save(self, run: Run) -> Path:
        """Write a checkpoint of this step, let `best` be the same file if it is the best one, and drop others.

        The last two stay; a later one is left from before the run went back to an earlier step.
        """
        path = self.checkpoints / f"{run.step:08}.safetensors"
        save_checkpoint(path, run.model, run.optimizer, run.step, run.state())
        self.settle(run, path)
        found = self.by_step()
        for other in found[found.index(path) + 1 :]:
            other.unlink(missing_ok=True)
        return path

    def settle(self, run: Run, path: Path) -> None:
        """Do what follows when the checkpoint of this step is written: note whether it is the best, drop older ones.

        A process may be killed before all of this is done, so a run that resumes does it as well.
        """
        if run.best is not None and run.best[0] == run.step:
            _same_file(path, self.best)
        found = self.by_step()
        if path in found:
            for other in found[: max(found.index(path) + 1 - KEPT, 0)]:
                other.unlink(missing_ok=True)

    def rewind(self, step: int) -> None:
        """Drop what was measured, written and kept after the step from which the run resumes: it will be again."""
        self._drop_drafts()
        for file in (self.metrics, self.gradients, self.samples):
            metrics.cut_after(file, step)
        for path in self.attention.glob("*.npy"):
            if path.stem.isdigit() and int(path.stem) > step:
                path.unlink(missing_ok=True)


def _same_file(path: Path, other: Path) -> None:
    """Give a file a second name, in one step; where hard links are not available, copy it."""
    if other.exists() and other.samefile(path):
        return  # to rename a file to another name of itself does nothing, and would leave the draft
    draft = other.with_name(f".{other.name}.{secrets.token_hex(4)}")
    try:
        os.link(path, draft)
        draft.replace(other)
    except OSError:
        with contextlib.suppress(OSError):
            draft.unlink()
        replace_file(other, path.read_bytes())
