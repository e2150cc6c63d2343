"""The training loop: update, measure, evaluate, keep.

Losses are read a few steps at a time, and nothing is kept of a step whose loss was not read and found finite: when a
run diverges, the checkpoint from before is the last good one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

from conformkit.reference.training import metrics
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.rates import rate_at
from conformkit.reference.training.run import Run

__all__ = ["DivergedError", "Listener", "Measured", "TrainingEnd", "train"]

READ_EVERY = 10
"""Steps after which losses are read."""


class DivergedError(ArithmeticError):
    """A loss or a gradient is no longer finite."""

    def __init__(self, what: str, value: float, step: int, kept: str) -> None:
        super().__init__(f"{what} is {value} at step {step}")
        self.what, self.value, self.step, self.kept = what, value, step, kept


@dataclass(frozen=True)
class Measured:
    """One update."""

    step: int
    loss: float
    norm: float
    """Of the gradients, before clipping."""
    rate: float
    speed: float
    """How much was learnt from in a second."""
    unit: str
    """Of the speed: tokens or images."""


@dataclass(frozen=True)
class TrainingEnd:
    """How training ended: `done`, `early` or `interrupted`, and the step and loss of the best evaluation."""

    end: str
    step: int
    best: tuple[int, float] | None


class Listener(Protocol):
    """What is called while training goes on."""

    def measured(self, last: Measured) -> None:
        """Some updates were made."""

    def evaluated(self, step: int, loss: float, *, best: bool) -> None:
        """The validation loss was computed."""


def train(
    run: Run,
    folder: RunFolder,
    listener: Listener,
    wanted: Callable[[], bool] = lambda: False,
    sample: Callable[[Any], None] = lambda _: None,
    looked: Callable[[Any], None] = lambda _: None,
) -> TrainingEnd:
    """Train until all steps are made, the loss no longer falls, or `wanted` says to stop.

    `sample` is called every `samples.interval` steps, `looked` at each evaluation. Raises DivergedError; OSError where
    something can't be written.
    """
    settings, every = run.config.training, run.config.samples.interval
    reader = _MetricReader(run, folder, listener)
    end = "done"
    while run.step < settings.steps:
        reader.add(*run.update())
        _keep_norms(run, folder)
        evaluated = run.step % settings.eval_interval == 0 or run.step == settings.steps
        sampled = bool(every) and run.step % every == 0
        if evaluated:
            reader.read()
            _evaluate(run, folder, listener)
            looked(run)
            if settings.patience and run.waited >= settings.patience:
                end, sampled = "early", False
        if sampled:
            sample(run)
        if evaluated:
            folder.save(run)  # last, so that a run that resumes lacks nothing of this step
        if sampled:
            reader.pause()
        if end == "early":
            break
        if wanted() and run.step < settings.steps:
            end = "interrupted"
            break
    reader.read()
    if end == "interrupted":
        folder.save(run)
    return TrainingEnd(end, run.step, run.best)


def _evaluate(run: Run, folder: RunFolder, listener: Listener) -> None:
    found, better = run.evaluate()
    _check_finite("the validation loss", found["loss"], run.step, folder)
    metrics.append(folder.metrics, [{"kind": "evaluation", "step": run.step, **found, "best": better}])
    listener.evaluated(run.step, found["loss"], best=better)


def _keep_norms(run: Run, folder: RunFolder) -> None:
    """Write the norm of each parameter's gradient if it was measured in this step; a number that JSON lacks is null."""
    if not run.norms:
        return
    values = {name: norm.item() for name, norm in run.norms.items()}
    finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
    metrics.append(folder.gradients, [{"step": run.step, "norms": finite}])


class _MetricReader:
    """Losses and norms that were computed but not looked at yet."""

    def __init__(self, run: Run, folder: RunFolder, listener: Listener) -> None:
        self.run, self.folder, self.listener = run, folder, listener
        self.waiting: list[tuple[int, Tensor, Tensor]] = []
        self.since = time.perf_counter()

    def add(self, loss: Tensor, norm: Tensor) -> None:
        """Remember what an update gave, and read all when there are enough."""
        self.waiting.append((self.run.step, loss, norm))
        if len(self.waiting) >= READ_EVERY:
            self.read()

    def pause(self) -> None:
        """Do not count the time that was spent on anything else than training."""
        self.read()
        self.since = time.perf_counter()

    def read(self) -> None:
        """Write what waits, check that it is finite, and tell the listener."""
        if not self.waiting:
            self.since = time.perf_counter()
            return
        found = [(step, loss.item(), norm.item()) for step, loss, norm in self.waiting]
        seconds = (time.perf_counter() - self.since) / len(found)
        speed = self.run.tokens_a_step / max(seconds, 1e-9)
        self.waiting, self.since = [], time.perf_counter()
        measured = [
            Measured(step, loss, norm, rate_at(self.run.config, step), speed, self.run.unit)
            for step, loss, norm in found
        ]
        metrics.append(self.folder.metrics, [_record(one, seconds) for one in measured])
        for one in measured:
            _check_finite("the loss", one.loss, one.step, self.folder)
            if self.run.config.speed.precision != "float16":  # there an overflow only lowers the scale
                _check_finite("the norm of the gradients", one.norm, one.step, self.folder)
        self.listener.measured(measured[-1])


def _record(one: Measured, seconds: float) -> dict[str, object]:
    """Return the line of an update; JSON has neither NaN nor infinity, so such a number is null."""
    numbers = {"loss": one.loss, "rate": one.rate, "norm": one.norm, "seconds": seconds}
    finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return {"kind": "step", "step": one.step, **finite}


def _check_finite(what: str, value: float, step: int, folder: RunFolder) -> None:
    if not math.isfinite(value):
        kept = folder.by_step()
        raise DivergedError(what, value, step, str(kept[-1]) if kept else "")
