"""Which kind of run it is, by its configuration: what it learns decides the model, the data and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from conformkit.reference.checkpoints import Checkpoint, read_checkpoint
from conformkit.reference.training.config import PAIRS, TrainingConfig, with_changes
from conformkit.reference.training.encoders.digits import DigitsSession, begin_digits, resume_digits
from conformkit.reference.training.encoders.masked import MaskedSession, begin_masked, resume_masked
from conformkit.reference.training.encoders.trained import Classifier, MaskedModel, classifier_from, masked_model_from
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.pairs.session import (
    PairsSession,
    Translator,
    begin_pairs,
    resume_pairs,
    translator_from,
)
from conformkit.reference.training.session import (
    Trained,
    TrainingSession,
    begin,
    read_best,
    resume_text,
    trained_from,
)

__all__ = ["Loaded", "RunSession", "begin_run", "load_model", "resume_run"]

RunSession = TrainingSession | PairsSession | MaskedSession | DigitsSession
Loaded = Trained | Translator | MaskedModel | Classifier


class _Begin(Protocol):
    """Prepares a new run; `again` begins one anew in its folder."""

    def __call__(self, config: TrainingConfig, place: Path, *, again: bool = False) -> RunSession: ...


@dataclass(frozen=True)
class _Kind:
    """How a run of one kind begins and resumes, and what its checkpoints hold."""

    begin: _Begin
    resume: Callable[[RunFolder, TrainingConfig, Checkpoint], RunSession]
    load: Callable[[Checkpoint, str], Loaded]


_TEXT = _Kind(begin, resume_text, trained_from)
_KINDS: Mapping[str, _Kind] = {
    **dict.fromkeys(PAIRS, _Kind(begin_pairs, resume_pairs, translator_from)),
    "masked": _Kind(begin_masked, resume_masked, masked_model_from),
    "digits": _Kind(begin_digits, resume_digits, classifier_from),
}
"""By task; without one, a language model learns a text."""


def begin_run(config: TrainingConfig, place: Path) -> RunSession:
    """Prepare a new run. Everything that can be refused is refused before the folder is made."""
    return _KINDS.get(config.data.task, _TEXT).begin(config, place)


def resume_run(place: Path, changes: Mapping[str, Any], checkpoint: Path | None = None) -> RunSession:
    """Prepare to resume from the newest checkpoint of a run, or from the one named.

    A run that was ended before its first checkpoint begins again.

    Raises: FolderError, CheckpointError, and what `begin_run` raises.
    """
    folder = RunFolder.open(place)
    config = with_changes(folder.config, changes)
    kind = _KINDS.get(config.data.task, _TEXT)
    if checkpoint is None and not folder.by_step():
        return kind.begin(config, place, again=True)
    saved = read_checkpoint(checkpoint or folder.newest)
    session = kind.resume(folder, config, saved)
    folder.settle(session.run, saved.path)
    return session


def load_model(path: Path, device: str = "cpu") -> Loaded:
    """Return the model of a checkpoint, or of the best one in the folder of a run.

    Raises: CheckpointError, FolderError; OSError where the file can't be read.
    """
    saved = read_best(path)
    return _KINDS.get(_task(saved), _TEXT).load(saved, device)


def _task(saved: Checkpoint) -> str:
    config = saved.extra.get("config")
    return str(config.get("data", {}).get("task", "")) if isinstance(config, dict) else ""
