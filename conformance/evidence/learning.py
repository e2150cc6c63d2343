"""Train the implementation's model on a source of known entropy, and measure from its logits what it has learned.

The loop is the kit's own, in float32: AdamW without decay, clipped by global norm, a short warm-up. What counts is
the model's loss on held-out texts; the harness computes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.statistics import FALSE_ALARMS
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.greedy_text import GREEDY, newest
from conformkit.conformance.evidence.logits import logits_of_rows, rows
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.inputs_of_call import further_inputs, positions_of
from conformkit.spec.arrays import Array
from conformkit.spec.loss import IGNORED, token_losses
from conformkit.spec.training import Texts, TextSource

__all__ = [
    "LUCK",
    "WARM_UP",
    "Learner",
    "LearningOutcome",
    "Lesson",
    "learned",
    "outcome_of",
    "pupil",
    "start",
    "training_form",
]  # fmt: skip


LUCK = math.log(1.0 / FALSE_ALARMS)
"""A model that has not seen the texts beats their source by this many nats only with the false-alarm probability."""
_CHUNK = 25
"""Steps per request: a slow model must not look like one that hangs."""
_HELD_OUT = 256
_CONTINUED = 64
WARM_UP = 20


@dataclass(frozen=True)
class Lesson:
    """What a model is trained on, and how."""

    name: str
    source: TextSource
    sizes: Mapping[str, int]
    length: int
    rate: float
    steps: int
    """At most."""
    enough: float
    """Training ends once the held-out loss is this close to the source's, in nats per target."""
    batch: int = 32
    exactly: tuple[str, ...] = ()
    """Sizes that the lesson depends on."""
    started: bool = False
    """Whether the initial weights are drawn here: they decide how fast a model learns."""
    prompt: int = 0
    """At the end, the length of held-out prompts for generation; 0: none."""


@dataclass(frozen=True, slots=True)
class LearningOutcome:
    """The result, on held-out texts."""

    steps: int
    losses: Array
    """Of each training batch, before its step."""
    texts: Texts
    """The source's surprise at each held-out target; 0 if ignored."""
    surprise: Array
    """The model's surprise at each held-out target; 0 if ignored."""
    hits: float
    """The share of targets that the model predicts as most probable."""
    moved: Mapping[str, bool]
    """By parameter, whether it changed."""
    written: Array | ImplementationFailure | None
    """What it generated greedily after the beginnings of held-out texts, or the exception that this raised."""

    @property
    def loss(self) -> float:
        """The model's mean surprise, in nats per target."""
        return float(self.surprise.sum() / self._counted)

    @property
    def floor(self) -> float:
        """The source's mean surprise at the same targets."""
        return float(self.texts.surprise.sum() / self._counted)

    @property
    def excess(self) -> float:
        """The model's surprise minus the source's."""
        return self.loss - self.floor

    @property
    def gains(self) -> Array:
        """The source's surprise minus the model's, summed over all texts, at each position, in nats (T,)."""
        return np.asarray((self.texts.surprise - self.surprise).sum(axis=0))

    @property
    def honest(self) -> bool:
        """Whether its gain can be luck: at any one position, and in all of them together."""
        return bool(self.gains.sum() < LUCK and self.gains.max() < LUCK + math.log(len(self.gains)))

    @property
    def _counted(self) -> int:
        return int((self.texts.y != IGNORED).sum())


@dataclass
class Learner:
    """A model, its trainer, and the number of steps taken."""

    instance: Instance
    loop: int
    steps: int = 0
    losses: list[float] = field(default_factory=list)

    def train(self, texts: Texts, rates: Array, max_norm: float = 1.0) -> None:
        """Take a step on each part of the texts, whose first axis counts steps."""
        bound = self.instance.subject.bound
        inputs = {"ids": texts.x[0]}
        inputs |= further_inputs(bound, self.instance.sizes, inputs)
        header, arrays = bound.call_request(inputs, {**self.instance.sizes, "causal": True, "T": positions_of(inputs)})
        header |= {"op": "train", "handle": self.loop, "rates": rates.tolist(), "max_norm": max_norm}
        header["dtype"] = self.instance.dtype
        arrays = {**arrays, "ids": self._laid_out(texts.x), "targets": self._laid_out(texts.y)}
        reply = self.instance.subject.link.request(header, arrays)
        losses = reply.tensors["out"]
        self.losses += losses.tolist() if losses.shape == rates.shape else [float("nan")] * len(rates)
        self.steps += len(rates)

    def _laid_out(self, steps: Array) -> Array:
        """Bring (K, B, T) into the implementation's order of axes."""
        first = self.instance.subject.bound.config.layout == "sequence first"
        return np.ascontiguousarray(steps.swapaxes(1, 2) if first else steps)


def pupil(model: Subject, sizes: Mapping[str, Any], seed: int, exactly: tuple[str, ...] = ()) -> Learner:
    """Build a model to be trained, as initialized. Raises NotApplicable if it can't be trained at such sizes."""
    instance = model.as_asked.build(dtype=training_form(model), seed=seed, **sizes)
    for name in exactly:
        if instance.sizes.get(name, sizes[name]) != sizes[name]:
            raise NotApplicable.from_sizes(f"its limits don't allow {name} = {sizes[name]}")
    made = model.link.request({"op": "loop", "handle": instance.handle}, {})
    return Learner(instance, made.header["handle"])


def training_form(model: Subject) -> str | None:
    """Return the number format to train in, None for the model's own. Raises NotApplicable if there is none."""
    model.requires("gradients")
    form = "float32" if model.offers("float32") else None
    if model.half and form is None:
        sentence = f"steps of training are lost in the rounding of {model.precision} weights"
        raise NotApplicable.from_formats(f"{sentence}; declare float32 as well")
    return form


def learned(model: Subject, lesson: Lesson, seed: int) -> LearningOutcome:
    """Return what a model has learned in a lesson; the result is shared by several clauses."""
    plain = model.as_asked
    return plain.once(("lesson", lesson.name, seed), lambda: _taught(plain, lesson, seed))


def _taught(model: Subject, lesson: Lesson, seed: int) -> LearningOutcome:
    learner = pupil(model, lesson.sizes, seed, lesson.exactly)
    instance = learner.instance
    if instance.sizes["vocab_size"] < lesson.source.size:
        raise NotApplicable.from_sizes(
            f"its limits allow {instance.sizes['vocab_size']} ids, the lesson has {lesson.source.size}"
        )
    if lesson.started:
        start(instance, np.random.default_rng([seed, 6]))
    length = min(model.as_asked.tokens(lesson.length), instance.sizes["block_size"])
    random = np.random.default_rng([seed, 1])
    held_out = lesson.source.draw(np.random.default_rng([seed, 2]), _HELD_OUT, length)
    before = instance.read_raw()
    batch = rows(model, lesson.batch)
    while True:
        learner.train(_drawn(lesson, random, batch, length), _rates(lesson, learner.steps))
        outcome = outcome_of(learner, held_out, before)
        if learner.steps >= lesson.steps or outcome.excess < lesson.enough or not np.isfinite(outcome.loss):
            return replace(outcome, written=_written(learner.instance, held_out, lesson.prompt))


def start(instance: Instance, random: Any) -> None:
    """Write weights from which every variant learns: embeddings of size 1 unless they are tied to something else.

    Parameters that the definition lacks keep their initial values: the model is wrong already.
    """
    subject = instance.subject
    if subject.bound.rules is None and subject.bound.same_count:
        raise NotApplicable("its weights could not be bound, and its initial weights decide how fast it learns")
    if subject.bound.rules is None:
        return
    small = subject.variant.tied or subject.variant.embedding_scale
    spread = 0.4 / math.sqrt(instance.sizes["d_model"]) if small else 1.0
    wide = spread * (math.sqrt(instance.sizes["d_model"]) if subject.variant.embedding_scale else 1.0)
    instance.write({name: _first(name, p.shape, random, spread, wide) for name, p in instance.canonical.items()})


def _first(name: str, shape: tuple[int, ...], random: Any, spread: float, wide: float) -> Array:
    *_, role, kind = name.split(".")
    if "norm" in role:
        return np.full(shape, float(kind == "weight"))
    if kind == "bias":
        return np.zeros(shape)
    if role.endswith(("embedding", "positions")):
        return np.asarray(random.normal(0.0, spread if role.endswith("embedding") else wide, shape))
    return np.asarray(random.uniform(-1.0, 1.0, shape) / math.sqrt(shape[-1]))


def _drawn(lesson: Lesson, random: Any, batch: int, length: int) -> Texts:
    texts = lesson.source.draw(random, _CHUNK * batch, length)
    return Texts(*(part.reshape(_CHUNK, batch, -1) for part in (texts.x, texts.y, texts.surprise)))


def _rates(lesson: Lesson, done: int) -> Array:
    return lesson.rate * np.minimum(1.0, (done + 1.0 + np.arange(_CHUNK)) / WARM_UP)


def outcome_of(learner: Learner, held_out: Texts, before: Mapping[str, Array]) -> LearningOutcome:
    """Measure what was learned so far."""
    logits = logits_of_rows(learner.instance, held_out.x, record=False)
    counted = held_out.y != IGNORED
    surprise = np.where(counted, token_losses(logits, np.where(counted, held_out.y, 0)), 0.0)
    after = learner.instance.read_raw()
    own = {p["name"] for p in learner.instance.trainable}
    moved = {name: bool((after[name] != value).any()) for name, value in before.items() if name in own}
    hits = float((logits.argmax(axis=-1) == held_out.y)[counted].mean())
    return LearningOutcome(learner.steps, np.array(learner.losses), held_out, surprise, hits, moved, None)


def _written(instance: Instance, texts: Texts, prompt: int) -> Array | ImplementationFailure | None:
    """Let the model continue the beginnings of texts greedily."""
    if not prompt or not (instance.subject.offers("generate") and instance.subject.offers("greedy")):
        return None
    prompts, count = texts.x[: rows(instance.subject, _CONTINUED), :prompt], texts.y.shape[1] - prompt + 1
    # the second way is for code that divides by a temperature of 0, which another clause judges
    ways: list[Mapping[str, Any]] = [GREEDY, {"top_k": 1}] if instance.subject.offers("top-k") else [GREEDY]
    refused: ImplementationFailure | None = None
    for way in ways:
        try:
            return newest(instance, prompts, count, **way)
        except ImplementationFailure as failure:
            refused = failure
    return refused
