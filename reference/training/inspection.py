"""`conform inspect RUN`: what the curves of a run say, and what its model does inside.

A folder has curves and a best model; a checkpoint alone has a model. Heads and units are looked at on validation data,
where that can still be read, otherwise on drawn ids.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from conformkit.reference.errors import RefusalError
from conformkit.reference.training import metrics
from conformkit.reference.training.anatomy import (
    Anatomy,
    HeadFacts,
    anatomy_of_encoder,
    anatomy_of_language_model,
    anatomy_of_translator,
)
from conformkit.reference.training.config import TrainingConfig
from conformkit.reference.training.corpus import load_corpus, tokenize
from conformkit.reference.training.diagnosis import Curves, RunFinding, curves, diagnose
from conformkit.reference.training.encoders.inputs import drawn_inputs, held_out_inputs
from conformkit.reference.training.encoders.trained import Classifier, MaskedModel
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.pairs.batches import held_out_batches
from conformkit.reference.training.pairs.corpus import encoded, load_pairs
from conformkit.reference.training.pairs.session import Translator
from conformkit.reference.training.run import validation_batches
from conformkit.reference.training.session import Trained
from conformkit.reference.training.sessions import Loaded, load_model
from conformkit.reference.training.source import floor_in_windows
from conformkit.reference.training.speed import check_device

__all__ = ["RunInspection", "floor_of", "inspect_run"]

ROWS = 16
"""Rows of validation data that are looked at."""
SMALL_SHARE = 0.01
SAME = 0.01
DEAD = 0.25
_LAST = 20
"""Steps over which the loss of training is averaged."""


@dataclass(frozen=True)
class RunInspection:
    """What was found, as data."""

    place: str
    title: str
    step: int
    parameters: int
    data: str
    """What heads and units were looked at with."""
    evaluations: Sequence[tuple[int, float]]
    broken: tuple[int, str] | None
    anatomy: Anatomy
    findings: Sequence[RunFinding]
    stopped: tuple[int, int] | None = None
    """Its last step, and how many it is to have, where it has not ended yet."""
    loss: float | None = None
    """Of the last steps in training."""
    uniform: float | None = None
    """The loss of a language model that knows nothing, ln V."""
    floor: float | None = None
    """The least loss that is possible, where that is known."""

    def as_object(self) -> dict[str, Any]:
        """Return it as JSON has it; a number that is not finite is null."""
        return {"schema": "conformkit.run-inspection/1", **_finite(asdict(self))}


def inspect_run(path: Path, device: str = "cpu") -> RunInspection:
    """Look at a run's folder, or at a checkpoint. Raises CheckpointError, FolderError, TrainingConfigError, OSError."""
    check_device(device)
    folder = RunFolder.open(path) if path.is_dir() else None
    measured = _curves(folder) if folder is not None else Curves([], [], [], [], [], None)
    if folder is not None and measured.broken is not None and not folder.by_step():
        return RunInspection(  # it broke before its first checkpoint
            str(path), folder.config.title, 0, 0, "", measured.evaluations, measured.broken, Anatomy([], [], []),
            diagnose(measured),
        )  # fmt: skip
    trained = load_model(path, device)
    anatomy, data = _looked_into(trained, device)
    return RunInspection(
        place=str(path), title=trained.config.title, step=trained.step,
        parameters=sum(parameter.numel() for parameter in trained.model.parameters()), data=data,
        evaluations=measured.evaluations, broken=measured.broken, anatomy=anatomy,
        findings=[*diagnose(measured), *inside(anatomy)], stopped=_stopped(folder, measured),
        loss=fmean(measured.losses[-_LAST:]) if measured.losses else None,
        uniform=math.log(trained.tokenizer.vocab_size) if isinstance(trained, Trained) else None, floor=measured.floor,
    )  # fmt: skip


def _stopped(folder: RunFolder | None, measured: Curves) -> tuple[int, int] | None:
    """Return the last step of a run and how many it is to have, if it has ended before that."""
    if folder is None or not measured.steps or folder.config.training.patience:
        return None
    reached, wanted = measured.steps[-1], folder.config.training.steps
    return (reached, wanted) if reached < wanted else None


def floor_of(config: TrainingConfig) -> float | None:
    """Return the least loss, in nats a token, that any model can reach, where that is known."""
    known = config.data.corpus == "synthetic" and config.data.tokenizer == "char" and not config.data.task
    return floor_in_windows(config.model.block_size) if known else None


def inside(found: Anatomy) -> Iterator[RunFinding]:
    """Yield what stands out inside a model."""
    for leak in found.leaks:
        yield RunFinding(
            "mask leak", f"{leak.what}: {leak.size:.3g} of what should be hidden arrives",
            "check which mask reaches attention, what True means in it, and that it acts before the softmax",
        )  # fmt: skip
    for one in found.units:
        if one.units and one.dead / one.units >= DEAD:
            yield RunFinding(
                "dead units", f"{one.place}: {one.dead} of {one.units} units are 0 at every position",
                "lower the rate or lengthen the warm-up; ReLU units that large updates push below 0 do not come back",
            )  # fmt: skip
    yield from _dead_heads(found.heads)


def _dead_heads(heads: Sequence[HeadFacts]) -> Iterator[RunFinding]:
    idle = [one.place for one in heads if one.share < SMALL_SHARE]
    if idle:
        yield RunFinding(
            "dead heads", f"{'; '.join(idle[:4])}: what they add is under 1 % of what another head of the layer adds",
            "they can be left out; fewer heads, or a lower rate early on, waste less",
        )  # fmt: skip
    even = [one.place for one in heads if one.most > 0 and one.entropy > 0.999 * one.most]
    if even:
        yield RunFinding(
            "even heads", f"{'; '.join(even[:4])}: all keys have equal weights",
            "the head has not learned where to look: train longer, or check that scores come from queries and keys",
        )  # fmt: skip
    layers: dict[str, list[HeadFacts]] = {}
    for one in heads:
        layers.setdefault(one.place.rpartition(",")[0], []).append(one)
    alike = [
        name
        for name, own in layers.items()
        if len(own) > 1 and max(one.unlike or 0.0 for one in own) < SAME and not all(o.place in even for o in own)
    ]
    if alike:
        yield RunFinding(
            "equal heads", f"{'; '.join(alike[:4])}: all heads have the same weights",
            "heads that start equal stay equal: check that each has its own rows of the projections",
        )  # fmt: skip


def _curves(folder: RunFolder) -> Curves:
    config = folder.config
    return curves(metrics.read_lines(folder.metrics), floor_of(config), text=not config.data.task)


def _looked_into(trained: Loaded, device: str) -> tuple[Anatomy, str]:
    if isinstance(trained, MaskedModel | Classifier):
        return _encoder(trained, device)
    if isinstance(trained, Translator):
        (src, tgt), data = _pairs(trained, device)
        return anatomy_of_translator(trained.model, src, tgt), data
    ids, data = _windows(trained, device)
    return anatomy_of_language_model(trained.model, ids), data


def _encoder(trained: MaskedModel | Classifier, device: str) -> tuple[Anatomy, str]:
    """Look into an encoder on held-out data, or on drawn inputs where that is gone."""
    config = trained.config
    try:
        given = held_out_inputs(trained, ROWS)
        data = f"{len(given[0])} held-out {'images' if isinstance(trained, Classifier) else 'rows'}"
    except (RefusalError, OSError) as error:
        given = drawn_inputs(trained, ROWS)
        data = f"drawn inputs, since the data of {config.data.task} can't be read: {error}"
    return anatomy_of_encoder(trained.model, *(part.to(device) for part in given)), data


def _windows(trained: Trained, device: str) -> tuple[Tensor, str]:
    """Return windows of the validation text, or drawn ids where the text is gone: (B, T)."""
    config = trained.config
    try:
        text = load_corpus(config.data.corpus).text
        val = tokenize(text, trained.tokenizer, config.data.fraction).val
        batch = validation_batches(val, config)[0][0][:ROWS]
    except (RefusalError, OSError, IndexError) as error:
        reason = str(error).splitlines()[0]
        size = (ROWS, max(config.model.block_size, 2))
        drawn = torch.randint(trained.tokenizer.vocab_size, size, generator=torch.Generator().manual_seed(0))
        return drawn.to(device), f"drawn ids, since the text can't be read: {reason}"
    return batch.to(device), f"{len(batch)} windows of the validation text"


def _pairs(trained: Translator, device: str) -> tuple[tuple[Tensor, Tensor], str]:
    """Return held-out pairs, or drawn ids where the pairs are gone: (B, S), (B, T)."""
    config = trained.config
    try:
        pairs = encoded(load_pairs(config.data).val, trained.sides, config.model.block_size)
        (src, tgt), _ = held_out_batches(pairs, ROWS, 1, torch.device(device))[0]
    except (RefusalError, OSError) as error:
        generator, size = torch.Generator().manual_seed(0), (ROWS, max(config.model.block_size - 3, 2))
        src, tgt = (torch.randint(4, side.vocab_size + 1, size, generator=generator) - 1 for side in trained.sides)
        return (src.to(device), tgt.to(device)), f"drawn ids, since the pairs can't be read: {error}"
    return (src, tgt), f"{len(src)} held-out pairs"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
