"""Clauses of spec/learning.md. Bounds as in test_training.py."""

from __future__ import annotations

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.learning import LearningOutcome, Lesson, learned
from conformkit.conformance.evidence.own_loop import own_loop
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.subject.tool import Tool
from conformkit.conformance.suite.registry import clause
from conformkit.spec.loss import IGNORED
from conformkit.spec.training import ALTERNATION, FIRST_AGAIN, Copies, Memory

COPIED = Copies()
PATTERN = Lesson(
    "A B A B", ALTERNATION,
    {"vocab_size": 2, "d_model": 32, "num_heads": 2, "num_layers": 2, "d_ff": 64, "block_size": 16},
    length=16, rate=1e-3, steps=300, enough=0.03, prompt=3,
)  # fmt: skip
COPY = Lesson(
    "copy", COPIED, {"vocab_size": 16, "d_model": 64, "num_heads": 4, "num_layers": 2, "d_ff": 128, "block_size": 17},
    length=16, rate=2e-3, steps=1000, enough=0.03, prompt=9,
)  # fmt: skip
DISTANT = Lesson(
    "the first again", FIRST_AGAIN,
    {"vocab_size": 8, "d_model": 32, "num_heads": 2, "num_layers": 1, "d_ff": 64, "block_size": 24},
    length=24, rate=5e-3, steps=600, enough=0.05,
)  # fmt: skip


@clause("TRAIN-AB", lesson=PATTERN.name)
def test_a_repeated_pattern_is_learned_by_heart(model: Subject, draw: Draw) -> None:
    outcome = learned(model, PATTERN, draw.seed)
    check(f"the loss is {outcome.loss:.4f} after {outcome.steps} steps, expected at most 0.05", outcome.loss < 0.05)
    if outcome.written is not None:
        share = _right(outcome, PATTERN)
        check(f"greedy text alternates at {share:.1%} of the positions", share == 1.0)


@clause("TRAIN-OVERFIT-BATCH")
def test_one_batch_is_learned_by_heart(model: Subject, draw: Draw) -> None:
    sizes = {"vocab_size": 12, "d_model": 48, "num_heads": 2, "num_layers": 2, "d_ff": 96, "block_size": 16}
    lesson = Lesson("by heart", Memory(draw.seed), sizes, length=16, rate=4e-3, steps=600, enough=0.07, batch=8)
    outcome = learned(model, lesson, draw.seed)
    check(f"the loss is {outcome.loss:.4f} after {outcome.steps} steps, expected at most 0.1", outcome.loss < 0.1)


@clause("TRAIN-COPY-LM", lesson=COPY.name)
def test_symbols_are_copied_after_a_separator(model: Subject, draw: Draw) -> None:
    outcome = learned(model, COPY, draw.seed)
    label = f"{outcome.hits:.1%} of the copied symbols are predicted after {outcome.steps} steps"
    check(f"{label}, expected 95 %", outcome.hits >= 0.95)


@clause("TRAIN-GEN-AGREES", lesson=COPY.name)
def test_generation_writes_what_training_taught(model: Subject, draw: Draw) -> None:
    share = _right(learned(model, COPY, draw.seed), COPY)
    check(f"greedy text copies {share:.1%} of the symbols, expected 90 %", share >= 0.9)


@clause("TRAIN-LONG-RANGE", lesson=DISTANT.name)
def test_the_first_id_is_known_at_the_last_position(model: Subject, draw: Draw) -> None:
    outcome = learned(model, DISTANT, draw.seed)
    label = f"{outcome.hits:.1%} of the texts are completed after {outcome.steps} steps"
    check(f"{label}, expected 95 %", outcome.hits >= 0.95)


@clause("TRAIN-OWN-LOOP")
def test_the_implementations_own_steps_train_its_own_model(
    train_step: Tool, model: Subject, own_adam: Tool | None, own_batches: Tool | None, draw: Draw
) -> None:
    outcome = own_loop(train_step, model, own_adam, own_batches, draw.seed)
    label = f"the held-out loss is {outcome.loss:.3f} after {outcome.steps} steps"
    label += f", the source's entropy {outcome.floor:.3f}"
    check(f"{label}: it knows what it can't have read", outcome.honest)
    check(f"{label}: expected at most 0.08 more", outcome.excess < 0.08)


def _right(outcome: LearningOutcome, lesson: Lesson) -> float:
    """Return the share of generated ids that equal the held-out ones, where these count."""
    if isinstance(outcome.written, ImplementationFailure):
        raise outcome.written
    assert outcome.written is not None
    rows = len(outcome.written)
    want = outcome.texts.y[:rows, lesson.prompt - 1 :]
    return float((outcome.written == want)[want != IGNORED].mean())
