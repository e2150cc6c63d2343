"""Clauses of spec/training.md.

Bounds. A model that has not seen the held-out texts gains c nats on the source with a probability of at most e^-c, and
LUCK is that c for a rate of false alarms of 1e-7 (conformance/evidence/learning.py). The other bounds lie between what
right models reach, and what wrong ones do that have more than twice the steps; both were measured over ten seeds and
more, `benchmarks/learning.py`.
"""

from __future__ import annotations

import math

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.learning import LearningOutcome, Lesson, learned, pupil
from conformkit.conformance.evidence.logits import logits_of, other_ids, rows
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.loss import token_losses
from conformkit.spec.training import RECALL, THREADS, TWO_THREADS, UNIFORM, Texts

_SIZES = {"vocab_size": 8, "d_model": 48, "d_ff": 96, "block_size": 24}

HEADS = Lesson(
    "threads, three heads", THREADS, {**_SIZES, "num_heads": 3, "num_layers": 1}, length=24, rate=4e-3, steps=1000,
    enough=0.1, started=True,
)  # fmt: skip
BLOCKS = Lesson(
    "two threads, two blocks", TWO_THREADS,
    {**_SIZES, "vocab_size": 4, "d_model": 32, "d_ff": 64, "num_heads": 1, "num_layers": 2}, length=16, rate=4e-3,
    steps=700, enough=0.15, exactly=("num_layers",), started=True,
)  # fmt: skip
"""One block with one head stays 0.37 above the source's entropy, two blocks that share their weights don't: these are
told by their number of parameters alone."""
LOOKUP = Lesson(
    "recall", RECALL, {**_SIZES, "num_heads": 2, "num_layers": 2, "block_size": 33}, length=33, rate=4e-3, steps=800,
    enough=0.05, exactly=("num_layers",), started=True,
)  # fmt: skip
DIE = Lesson(
    "a fair die", UNIFORM, {**_SIZES, "d_model": 24, "num_heads": 2, "num_layers": 1, "block_size": 16}, length=16,
    rate=5e-3, steps=150, enough=-math.inf,
)  # fmt: skip


@clause("TRAIN-START-LNV")
def test_an_untrained_model_knows_nothing(model: Subject, draw: Draw) -> None:
    instance = pupil(model, HEADS.sizes, draw.seed).instance
    size = instance.sizes["vocab_size"]
    texts = THREADS.draw(np.random.default_rng(draw.seed), rows(model, 32), _length(model, 24))
    loss = _loss(logits_of(instance, texts.x), texts.y)
    check(f"the loss is {loss:.3f}, ln {size} is {math.log(size):.3f}", abs(loss - math.log(size)) < 0.6)


@clause("TRAIN-LOSS-DOWN")
def test_the_loss_of_a_batch_falls(model: Subject, draw: Draw) -> None:
    losses = _repeated(model, draw.seed, steps=40)
    label = f"the loss of one batch is {losses[-1]:.3f} after 40 steps, {losses[0]:.3f} before them"
    check(label, losses[-1] < 0.9 * losses[0])


@clause("TRAIN-MOVES-ALL", lesson=DIE.name)
def test_every_parameter_learns(model: Subject, draw: Draw) -> None:
    outcome = learned(model, DIE, draw.seed)
    still = [name for name, moved in outcome.moved.items() if not moved]
    label = f"{len(still)} of {len(outcome.moved)} parameters did not change in {outcome.steps} steps"
    check(f"{label}: {', '.join(still[:6])}; no gradient reaches them", not still)


@clause("TRAIN-FINITE")
def test_training_stays_finite(model: Subject, draw: Draw) -> None:
    learner = pupil(model, HEADS.sizes, draw.seed)
    texts = _batches(model, draw.seed, 50)
    learner.train(texts, np.full(50, 4e-2))
    wrong = np.flatnonzero(~np.isfinite(learner.losses))
    check(f"the loss of step {wrong[:1]} of 50 is not a finite number", not wrong.size)
    logits = learner.instance(texts.x[0])
    check("the logits after 50 steps are not all finite", bool(np.isfinite(logits).all()))


@clause("TRAIN-REPEATABLE")
def test_the_same_seed_gives_the_same_run(model: Subject, draw: Draw) -> None:
    wanted = {"dropout": 0.1} if model.offers("dropout") else {}
    runs = []
    for _ in range(2):
        learner = pupil(model, {**HEADS.sizes, **wanted}, draw.seed)
        learner.train(_batches(model, draw.seed, 12), np.full(12, 4e-3))
        runs.append(learner.losses)
    differs = [step for step, (one, other) in enumerate(zip(*runs, strict=True)) if one != other]
    check(f"the loss of step {differs[:1]} differs between two runs with one seed", not differs)


@clause("TRAIN-RANDOM-FLOOR", lesson=DIE.name)
def test_nobody_predicts_a_fair_die(model: Subject, draw: Draw) -> None:
    _not_below(model, learned(model, DIE, draw.seed), draw)


@clause("TRAIN-ENTROPY-FLOOR", lesson=HEADS.name)
def test_no_model_is_less_surprised_than_the_source(model: Subject, draw: Draw) -> None:
    _not_below(model, learned(model, HEADS, draw.seed), draw)


@clause("TRAIN-BEATS-UNIGRAM", lesson=HEADS.name)
def test_training_learns_more_than_how_often_ids_come(model: Subject, draw: Draw) -> None:
    _reaches(learned(model, HEADS, draw.seed), 1.15)


@clause("TRAIN-NEEDS-ORDER", lesson=HEADS.name)
def test_a_model_tells_positions_apart(model: Subject, draw: Draw) -> None:
    _reaches(learned(model, HEADS, draw.seed), 0.7, "which id stands where is not used")


@clause("TRAIN-ENTROPY-REACH", lesson=HEADS.name)
def test_heads_follow_several_threads_at_once(model: Subject, draw: Draw) -> None:
    _reaches(learned(model, HEADS, draw.seed), 0.15, "the heads don't look at different positions")


@clause("TRAIN-OWN-BLOCKS", lesson=BLOCKS.name)
def test_blocks_learn_weights_of_their_own(model: Subject, draw: Draw) -> None:
    counts = [
        model.construct(model.as_asked.sizes(**{**BLOCKS.sizes, "num_layers": layers})).count() for layers in (1, 3)
    ]
    label = (
        f"a model of 3 blocks trains {counts[1]} numbers, one of 1 block {counts[0]}: the blocks share their weights"
    )
    check(label, counts[1] > counts[0])
    _reaches(learned(model, BLOCKS, draw.seed), 0.2, "the blocks don't look at different positions")


@clause("TRAIN-TWO-LAYERS", lesson=LOOKUP.name)
def test_a_second_block_builds_on_the_first(model: Subject, draw: Draw) -> None:
    _reaches(learned(model, LOOKUP, draw.seed), 0.15, "no block uses what the one before has found")


# --- parts ------------------------------------------------------------------------------------------------------------


def _reaches(outcome: LearningOutcome, margin: float, why: str = "") -> None:
    """Check that the held-out loss is within a margin of the source's entropy."""
    label = (
        f"the held-out loss is {outcome.loss:.3f} after {outcome.steps} steps, the source's entropy {outcome.floor:.3f}"
    )
    check(f"{label}: expected at most {margin} more{f'; {why}' if why else ''}", outcome.excess < margin)


def _not_below(model: Subject, outcome: LearningOutcome, draw: Draw) -> None:
    """Check that the held-out loss is not below the source's entropy by more than luck allows."""
    label = (
        f"the held-out loss is {outcome.loss:.3f} after {outcome.steps} steps, the source's entropy {outcome.floor:.3f}"
    )
    best = int(np.argmax(outcome.gains))
    gained = f"at position {best} the model's surprise is lower by {outcome.gains[best]:.0f} nats"
    gained += f" in {len(outcome.texts.x)} texts"
    check(f"{label}; {gained}: {'' if outcome.honest else _leak(model, draw)}", outcome.honest)


def _leak(model: Subject, draw: Draw) -> str:
    """Say how the target is known, as far as one call shows."""
    instance = model.construct(model.as_asked.sizes(**HEADS.sizes)).scatter(draw)
    size = instance.sizes["vocab_size"]
    ids = draw.ids(size, rows(model, 2), _length(model, 24))
    changed = ids.copy()
    changed[:, -1] = other_ids(ids[:, -1], size, draw)
    before, after = logits_of(instance, ids)[:, :-1], logits_of(instance, changed)[:, :-1]
    sees = bool((np.abs(before - after) > 1e-9).any())
    return "it sees the future: logits change with a later id" if sees else "it knows what it can't have read"


def _length(model: Subject, wanted: int) -> int:
    return model.as_asked.tokens(wanted)


def _loss(logits: Array, targets: Array) -> float:
    return float(token_losses(logits, targets).mean())


def _batches(model: Subject, seed: int, count: int) -> Texts:
    """Draw the batches of `count` steps (K, B, T)."""
    batch, length = rows(model, 32), _length(model, 24)
    texts = THREADS.draw(np.random.default_rng([seed, 3]), count * batch, length)
    return Texts(*(part.reshape(count, batch, -1) for part in (texts.x, texts.y, texts.surprise)))


def _repeated(model: Subject, seed: int, *, steps: int) -> list[float]:
    """Train on one batch again and again; return its losses, the last one after all steps."""
    learner = pupil(model, HEADS.sizes, seed)
    one = _batches(model, seed, 1)
    texts = Texts(*(np.repeat(part, steps + 1, axis=0) for part in (one.x, one.y, one.surprise)))
    learner.train(texts, np.full(steps + 1, 4e-3))
    return learner.losses
