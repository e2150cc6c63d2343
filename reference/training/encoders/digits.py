"""A vision transformer learns handwritten digits: 1,797 images of 8×8 pixels, which scikit-learn ships.

The images are in the order in which they were collected, a writer's after one another. The last part is held out as it
is, so most of its writers are new; a random split would show the same hands on both sides.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from conformkit.reference.checkpoints import Checkpoint
from conformkit.reference.errors import RefusalError
from conformkit.reference.generation import _evaluating
from conformkit.reference.loss import cross_entropy
from conformkit.reference.steps import Batch
from conformkit.reference.training import metrics
from conformkit.reference.training.config import TrainingConfig, TrainingConfigError
from conformkit.reference.training.encoders.session import EncoderSession
from conformkit.reference.training.encoders.trained import EXTENT, build_vit
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.run import Run
from conformkit.reference.training.speed import Fast, check_device
from conformkit.reference.vision.model import VisionTransformer

__all__ = ["Digits", "DigitsRun", "DigitsSession", "MissingDigitsError", "begin_digits", "load_digits", "resume_digits"]

BRIGHTEST = 16.0
SHOWN = 24


class MissingDigitsError(RefusalError):
    """The package that ships the images is not installed."""


@dataclass(frozen=True)
class Digits:
    """Images (N, 1, 8, 8) between 0 and 1 with their classes (N,), cut in two."""

    train: tuple[Tensor, Tensor]
    val: tuple[Tensor, Tensor]
    sha256: str


def load_digits(fraction: float) -> Digits:
    """Return the images, the first part to learn from. Raises MissingDigitsError without scikit-learn."""
    try:
        from sklearn import datasets  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError as error:
        want = "installed: pip install 'conformkit[digits]'"
        raise MissingDigitsError("scikit-learn, which ships the digits,", "missing", want) from error
    found = datasets.load_digits()
    images = torch.from_numpy(found.images).float()[:, None] / BRIGHTEST  # (N, 1, 8, 8)
    classes = torch.from_numpy(found.target).long()  # (N,)
    count = int(fraction * len(images))
    content = found.images.tobytes() + found.target.tobytes()
    return Digits(
        (images[:count], classes[:count]), (images[count:], classes[count:]), hashlib.sha256(content).hexdigest()
    )


class DigitsRun(Run):
    """A vision transformer, and the images that it learns from."""

    unit = "images"

    def __init__(self, config: TrainingConfig, digits: Digits) -> None:
        _check(config)
        check_device(config.speed.device)
        torch.manual_seed(config.training.seed)
        self.model: VisionTransformer
        model = build_vit(config).to(config.speed.device)
        super().__init__(config, model, Fast(model, config.speed), digits.sha256)
        self.images, self.classes = (part.to(self.device) for part in digits.train)
        self.held_out = tuple(part.to(self.device) for part in digits.val)

    @property
    def tokens_a_step(self) -> int:
        """How many images an update learns from."""
        return self.config.training.batch_size * self.config.training.accumulate

    @property
    def vocabulary(self) -> str:
        """What is seen: the name of the images."""
        return "digits"

    def draw(self) -> Batch:
        """Draw images, each independently of the others."""
        rows = torch.randint(len(self.images), (self.config.training.batch_size,)).to(self.device)
        return self.images[rows], self.classes[rows]

    @torch.no_grad()
    def measured(self) -> dict[str, float]:
        """Measure loss and accuracy on all held-out images."""
        images, classes = self.held_out
        with _evaluating(self.fast):
            logits = self.fast(images)  # (N, 10)
        right = (logits.argmax(dim=-1) == classes).double().mean().item()
        return {"loss": cross_entropy(logits, classes).item(), "accuracy": right}


@dataclass(frozen=True)
class DigitsSession(EncoderSession):
    """A run, its folder, and its images."""

    run: DigitsRun
    digits: Digits

    @property
    def description(self) -> str:
        """What is about to be trained, in a sentence."""
        run = self.run
        parameters = sum(parameter.numel() for parameter in run.model.parameters())
        return (
            f"{parameters:,} parameters, {len(self.digits.train[1]):,} images to learn from, "
            f"{len(self.digits.val[1]):,} to validate on, {run.config.training.steps:,} steps of {run.tokens_a_step} "
            "images"
        )

    @property
    def shown(self) -> tuple[Tensor, ...]:
        """The image whose attention is drawn: (1, 1, 8, 8)."""
        return (self.digits.val[0][:1].to(self.run.device),)

    def sample(self, run: DigitsRun) -> None:
        """Keep the classes of a few held-out images as they are guessed now."""
        metrics.append(self.folder.samples, self.guesses(run.model, run.step)[:SHOWN])

    def scores(self) -> list[str]:
        """Return the accuracy of the best evaluation, as a line."""
        return [f"held-out images: {self.best['accuracy']:.1%} classified right"]

    @torch.no_grad()
    def guesses(self, model: VisionTransformer, step: int) -> list[dict[str, object]]:
        """Return the held-out images with their classes and the guessed ones, those that are wrong first."""
        images, classes = (part.to(next(model.parameters()).device) for part in self.digits.val)
        with _evaluating(model):
            shares = model(images).softmax(dim=-1)  # (N, 10)
        best = shares.max(dim=-1)
        rows = [
            {"step": step, "image": number, "wanted": wanted, "guess": guess, "probability": round(share, 4)}
            for number, (wanted, guess, share) in enumerate(
                zip(classes.tolist(), best.indices.tolist(), best.values.tolist(), strict=True),
                len(self.digits.train[1]),
            )
        ]
        return sorted(rows, key=lambda row: row["wanted"] == row["guess"])


def begin_digits(config: TrainingConfig, place: Path, *, again: bool = False) -> DigitsSession:
    """Prepare a new run. Everything that can be refused is refused before the folder is made.

    `again` begins a run anew in its folder.
    """
    digits = load_digits(config.data.fraction)
    run = DigitsRun(config, digits)
    return DigitsSession(run, RunFolder.create(place, config, again=again), digits)


def resume_digits(folder: RunFolder, config: TrainingConfig, saved: Checkpoint) -> DigitsSession:
    """Prepare to resume from a checkpoint of the folder's run. Raises CheckpointError, and as `begin_digits`."""
    digits = load_digits(config.data.fraction)
    run = DigitsRun(config, digits)
    run.restore(saved)
    folder.rewind(run.step)
    return DigitsSession(run, folder, digits)


def _check(config: TrainingConfig) -> None:
    if config.data.corpus != "synthetic":
        wanted = "none: the images of digits come with scikit-learn"
        raise TrainingConfigError("data.corpus", config.data.corpus, wanted)
    patch = config.model.patch_size
    if EXTENT % patch:
        raise TrainingConfigError("model.patch_size", patch, f"a divisor of {EXTENT}, the extent of an image")
    tokens = (EXTENT // patch) ** 2 + (config.variant.pooling == "class")
    if config.model.block_size != tokens:
        raise TrainingConfigError(
            "model.block_size", config.model.block_size, f"{tokens}: the patches, and what is added"
        )
