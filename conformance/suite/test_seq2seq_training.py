"""Clauses of spec/seq2seq_training.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.copying import CopyingOutcome, examples, learned, pupil
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.copying import COPY, PAD, REVERSE, Task
from conformkit.spec.padding import padding_mask, target_mask


@clause("COPY-LOSS-DOWN")
def test_the_loss_of_a_batch_falls(transformer: Subject, draw: Draw) -> None:
    losses = _repeated(transformer, draw.seed, 40)
    label = f"the loss of one batch is {losses[-1]:.3f} after 40 steps, {losses[0]:.3f} before them"
    check(label, losses[-1] < 0.9 * losses[0])


@clause("COPY-FINITE")
def test_training_stays_finite(transformer: Subject, draw: Draw) -> None:
    learner = pupil(transformer, COPY, draw.seed)
    batches = examples(transformer, COPY, np.random.default_rng([draw.seed, 3]), 40)
    learner.train(batches, np.full(40, 6e-2))
    wrong = np.flatnonzero(~np.isfinite(learner.losses))
    check(f"the loss of step {wrong[:1]} of 40 is not a finite number", not wrong.size)
    src, tgt = batches[0].src, batches[0].tgt
    logits = learner.instance(src, tgt, padding_mask(src, PAD), target_mask(tgt, PAD))
    check("the logits after 40 steps are not all finite", bool(np.isfinite(logits).all()))


@clause("COPY-MOVES-ALL", lesson=COPY.name)
def test_every_parameter_learns(transformer: Subject, draw: Draw) -> None:
    outcome = learned(transformer, COPY, draw.seed)
    label = f"{len(outcome.still)} parameters did not change in {outcome.steps} steps"
    check(f"{label}: {', '.join(outcome.still[:6])}; no gradient reaches them", not outcome.still)


@clause("COPY-TASK", lesson=COPY.name)
def test_a_source_is_copied(transformer: Subject, draw: Draw) -> None:
    outcome = _check_learned(transformer, COPY, draw)
    check(f"the loss is {outcome.loss:.3f} after {outcome.steps} steps, expected at most 0.2", outcome.loss < 0.2)


@clause("COPY-ALONE", lesson=COPY.name)
def test_a_model_that_learned_to_copy_copies_when_it_is_left_alone(transformer: Subject, draw: Draw) -> None:
    outcome = learned(transformer, COPY, draw.seed)
    label = f"{outcome.alone:.1%} of the ids are right after its own output, {outcome.hits:.1%} after the right ids"
    check(f"{label}: expected 90 %", outcome.alone >= 0.9)


@clause("COPY-GENERATE", lesson=COPY.name)
def test_generation_writes_what_training_taught(transformer: Subject, draw: Draw) -> None:
    share = learned(transformer, COPY, draw.seed).written
    if isinstance(share, Exception):
        raise share
    check(f"greedy text copies {share:.1%} of the ids, expected 90 %", share >= 0.9)


@clause("COPY-REVERSE", lesson=REVERSE.name)
def test_a_source_is_reversed(transformer: Subject, draw: Draw) -> None:
    _check_learned(transformer, REVERSE, draw)


@clause("COPY-REPEATABLE")
def test_the_same_seed_gives_the_same_run(transformer: Subject, draw: Draw) -> None:
    one, other = (_repeated(transformer, draw.seed, 12, dropout=0.1) for _ in range(2))
    differs = [step for step, (loss, again) in enumerate(zip(one, other, strict=True)) if loss != again]
    check(f"the loss of step {differs[:1]} differs between two runs with one seed", not differs)


def _check_learned(transformer: Subject, task: Task, draw: Draw) -> CopyingOutcome:
    outcome = learned(transformer, task, draw.seed)
    label = f"{outcome.hits:.1%} of the ids are predicted after {outcome.steps} steps"
    check(f"{label}, expected 95 %", outcome.hits >= 0.95)
    return outcome


def _repeated(transformer: Subject, seed: int, steps: int, dropout: float = 0.0) -> list[float]:
    """Train a new model on one batch again and again; return the losses before each step."""
    wanted = {"dropout": dropout} if transformer.offers("dropout") else {}
    learner = pupil(transformer, COPY, seed, **wanted)
    batch = examples(transformer, COPY, np.random.default_rng([seed, 3]), 1)
    learner.train(batch * steps, np.full(steps, 6e-3))
    return learner.losses
