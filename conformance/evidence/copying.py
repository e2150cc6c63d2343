"""Train an encoder-decoder to copy and to reverse, and measure its predictions and the text that it generates.

The loop is the kit's own, as in learning.py: cross-entropy without padding, AdamW without decay, gradients clipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.learning import WARM_UP, start, training_form
from conformkit.conformance.evidence.logits import parts, rows
from conformkit.conformance.evidence.seq2seq_generation import unwatched
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.inputs_of_call import positions_of
from conformkit.spec.arrays import Array
from conformkit.spec.copying import BEGIN, END, PAD, Examples, Task
from conformkit.spec.loss import IGNORED, token_losses
from conformkit.spec.padding import padding_mask, target_mask

__all__ = ["CHUNK", "STEPS", "CopyingOutcome", "Pupil", "examples", "learned", "pupil"]


STEPS = 1000
"""At most."""
CHUNK = 25
"""Steps per request."""
_BATCH = 32
_HELD_OUT = 256
_ALONE = 96
_RATE = 6e-3
_ENOUGH = 0.99
"""Training ends once this share of the held-out ids is predicted, and the loss is this low."""
_LOW = 0.1
_SIZES = {"d_model": 32, "num_heads": 2, "num_encoder_layers": 1, "num_decoder_layers": 1, "d_ff": 64}


@dataclass(frozen=True, slots=True)
class CopyingOutcome:
    """The result, on held-out pairs."""

    instance: Instance
    steps: int
    losses: Array
    """Of each training batch, before its step."""
    held_out: Examples
    loss: float
    """In nats per target."""
    hits: float
    """The share of targets that are predicted as most probable, given the right ids before them."""
    still: tuple[str, ...]
    """Parameters that did not change."""
    alone: float = 0.0
    """The share of right targets when the model reads its own output."""
    written: float | Exception = 0.0
    """The same share with the implementation's own generation, or the exception that it raised."""


@dataclass
class Pupil:
    """A model, its trainer, and the number of steps taken."""

    instance: Instance
    loop: int
    losses: list[float] = field(default_factory=list)

    @property
    def steps(self) -> int:
        """The number of steps taken."""
        return len(self.losses)

    def train(self, batches: list[Examples], rates: Array, max_norm: float = 1.0) -> None:
        """Take a step on each batch."""
        bound = self.instance.subject.bound
        named = [_inputs(batch) for batch in batches]
        found = [bound.call_request(inputs, {**self.instance.sizes, "T": positions_of(inputs)}) for inputs in named]
        header = {**found[0][0], "op": "train", "handle": self.loop, "rates": rates.tolist(), "max_norm": max_norm}
        arrays = {name: np.stack([own[name] for _, own in found]) for name in found[0][1]}
        floats = {n: a.astype(np.float32) for n, a in arrays.items() if np.issubdtype(a.dtype, np.floating)}
        targets = np.stack([bound.to_theirs(batch.wanted) for batch in batches])
        header["stepped"] = list(arrays)
        reply = self.instance.subject.link.request(header, {**arrays, **floats, "targets": targets})
        losses = reply.tensors["out"]
        self.losses += losses.tolist() if losses.shape == rates.shape else [float("nan")] * len(rates)


def pupil(model: Subject, task: Task, seed: int, **wanted: Any) -> Pupil:
    """Build a model to be trained, as initialized. Raises NotApplicable if it can't be trained at such sizes."""
    sizes = {**_SIZES, "src_vocab_size": task.size, "tgt_vocab_size": task.size, "max_len": task.longest + 1}
    instance = model.as_asked.build(dtype=training_form(model), seed=seed, **sizes, **wanted)
    for name, least in sizes.items():
        if name in {"src_vocab_size", "tgt_vocab_size", "max_len"} and instance.sizes[name] < least:
            raise NotApplicable.from_sizes(f"its limits allow {name} = {instance.sizes[name]}, the task takes {least}")
    if instance.sizes["pad_id"] != PAD:
        raise NotApplicable(f"its pad id is {instance.sizes['pad_id']}, the task's {PAD}")
    made = model.link.request({"op": "loop", "handle": instance.handle}, {})
    return Pupil(instance, made.header["handle"])


def examples(model: Subject, task: Task, random: Any, count: int) -> list[Examples]:
    """Draw `count` batches."""
    return [task.draw(random, rows(model, _BATCH)) for _ in range(count)]


def learned(model: Subject, task: Task, seed: int) -> CopyingOutcome:
    """Return what a model has learned of a task; the result is shared by several clauses."""
    plain = model.as_asked
    return plain.once(("task", task, seed), lambda: _taught(plain, task, seed))


def _taught(model: Subject, task: Task, seed: int) -> CopyingOutcome:
    learner = pupil(model, task, seed)
    start(learner.instance, np.random.default_rng([seed, 6]))
    random = np.random.default_rng([seed, 1])
    held_out = task.draw(np.random.default_rng([seed, 2]), _HELD_OUT)
    before = learner.instance.read_raw()
    while True:
        learner.train(examples(model, task, random, CHUNK), _rates(learner.steps))
        outcome = _outcome(learner, held_out, before)
        enough = outcome.hits > _ENOUGH and outcome.loss < _LOW
        if learner.steps >= STEPS or enough or not np.isfinite(outcome.loss):
            return replace(outcome, alone=_alone(learner.instance, held_out), written=_written(outcome))


def _rates(done: int) -> Array:
    """Rise for a while, then fall slowly."""
    step = done + 1.0 + np.arange(CHUNK)
    return np.asarray(_RATE * np.minimum(1.0, step / WARM_UP) * (1.0 - 0.8 * step / STEPS))


def _outcome(learner: Pupil, held_out: Examples, before: dict[str, Array]) -> CopyingOutcome:
    instance = learner.instance
    logits = _logits(instance, held_out.src, held_out.tgt)  # (B, T, V)
    counted = held_out.wanted != IGNORED
    losses = token_losses(logits, np.where(counted, held_out.wanted, 0))[counted]
    after, own = instance.read_raw(), {p["name"] for p in instance.trainable}
    still = tuple(name for name, value in before.items() if name in own and not (after[name] != value).any())
    hits = float((logits.argmax(axis=-1) == held_out.wanted)[counted].mean())
    return CopyingOutcome(
        instance, learner.steps, np.array(learner.losses), held_out, float(losses.mean()), hits, still
    )


def _alone(instance: Instance, held_out: Examples) -> float:
    """Let the model continue from its own arg maxes, one call per position."""
    src = held_out.src[:_ALONE]
    tgt = np.full((len(src), 1), BEGIN)
    for _ in range(held_out.wanted.shape[1]):
        newest = _logits(instance, src, tgt)[:, -1].argmax(axis=-1)
        tgt = np.concatenate([tgt, newest[:, None]], axis=1)
    return _share(tgt[:, 1:], held_out.wanted[:_ALONE])


def _written(outcome: CopyingOutcome) -> float | Exception:
    """Let the model generate for held-out sources with its own method."""
    if not outcome.instance.subject.offers("generate"):
        return 0.0
    try:
        return _own_share(outcome)
    except (ImplementationFailure, ClauseFailure) as failure:
        return failure


def _own_share(outcome: CopyingOutcome) -> float:
    want = outcome.held_out.wanted[: rows(outcome.instance.subject, _ALONE)]
    ends = {"eos_id": END} if outcome.instance.subject.offers("eos-id") else {}
    got = unwatched(outcome.instance, outcome.held_out.src[: len(want)], want.shape[1], **ends)
    return _share(np.pad(got, ((0, 0), (0, want.shape[1] - got.shape[1]))), want)


def _share(got: Array, want: Array) -> float:
    return float((got == want)[want != IGNORED].mean())


def _logits(instance: Instance, src: Array, tgt: Array) -> Array:
    pieces = np.array_split(np.arange(len(src)), parts(instance.subject, len(src)))
    found = [
        instance(src[i], tgt[i], padding_mask(src[i], PAD), target_mask(tgt[i], PAD), record=False) for i in pieces
    ]
    return np.concatenate(found).astype(np.float64)


def _inputs(batch: Examples) -> dict[str, Array]:
    masks = {"src_mask": padding_mask(batch.src, PAD), "tgt_mask": target_mask(batch.tgt, PAD)}
    return {"src": batch.src, "tgt": batch.tgt, **masks}
