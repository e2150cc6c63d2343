"""The implementation's own training: its steps, its optimizer, its batches, on a source of known entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.values import ids, number, several
from conformkit.conformance.evidence.learning import Learner, LearningOutcome, outcome_of, pupil
from conformkit.conformance.evidence.logits import rows
from conformkit.conformance.evidence.trainable_fixtures import optimizer
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.subject.tool import Parameters, Tool, ToolObject, WorkerOptimizer
from conformkit.fixtures.making import normals
from conformkit.spec.arrays import Array
from conformkit.spec.attention import softmax
from conformkit.spec.data import sliding_windows
from conformkit.spec.training import Markov

__all__ = ["SOURCE", "own_loop"]


SOURCE = Markov(softmax(2.2 * normals(8, 8, seed=233)))
"""Golden G233."""
_SIZES = {"vocab_size": 8, "d_model": 32, "num_heads": 2, "num_layers": 1, "d_ff": 64, "block_size": 16}
_LENGTH = 16
_CORPUS = 6000
_STEPS = 600
_EVERY = 50
_ENOUGH = 0.04
_RATE = 3e-3


def own_loop(
    train_step: Tool, model: Subject, own_adam: Tool | None, own_batches: Tool | None, seed: int
) -> LearningOutcome:
    """Train a model of the implementation with what it exports, until it is good or the steps are used up."""
    if model.bound.config.layout == "sequence first":
        raise NotApplicable("its ids have positions first: the layout that the tools expect is not declared")
    learner = pupil(model, _SIZES, seed)
    random = np.random.default_rng([seed, 4])
    corpus = SOURCE.draw(random, 1, _CORPUS).x[0]
    held_out = SOURCE.draw(np.random.default_rng([seed, 5]), 256, _LENGTH)
    descends = _optimizer(learner, own_adam)
    before = learner.instance.read_raw()
    batch = rows(model, 32)
    while True:
        for _ in range(_EVERY):
            x, y = _batch(own_batches, corpus, batch, random)
            loss = train_step(model=learner.instance, optimizer=descends, x=x, y=y)
            learner.losses.append(number("the loss of a step", loss))
        learner.steps += _EVERY
        outcome = outcome_of(learner, held_out, before)
        if learner.steps >= _STEPS or outcome.excess < _ENOUGH:
            return outcome


def _optimizer(learner: Learner, own_adam: Tool | None) -> ToolObject | WorkerOptimizer:
    if own_adam is None:
        return optimizer(learner.instance, "torch.optim:AdamW", _RATE)
    options = {name: value for name, value in (("lr", _RATE), ("weight_decay", 0.0)) if own_adam.offers(_dashed(name))}
    return own_adam.make(params=Parameters(learner.instance.handle), **options)


def _batch(own_batches: Tool | None, corpus: Array, batch: int, random: Any) -> tuple[Array, Array]:
    """Draw a batch with the implementation's function, else by hand."""
    if own_batches is None:
        windows = sliding_windows(corpus, _LENGTH)
        chosen = random.integers(0, len(windows[0]), batch)
        return windows[0][chosen], windows[1][chosen]
    drawn = own_batches.seeded(
        int(random.integers(2**31)), ids=corpus, batch_size=batch, block_size=_LENGTH
    )  # fmt: skip
    x, y = (ids("a batch", part, (batch, _LENGTH)) for part in several("get_batch", drawn, 2))
    return x, y


def _dashed(name: str) -> str:
    return name.replace("_", "-")
