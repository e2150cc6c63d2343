"""Greedy text that varies: weights and prompts on which mistakes of generation show.

Randomly drawn models soon repeat one id, and then any method of choosing the next one looks right. Here weights are
drawn until the text of many prompts varies; prompts whose choices are so close that rounding could change an arg max
are left out. What is expected comes from the model's own logits, called without `generate`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    check,
    check_equal,
    check_finite,
    check_shape,
    supposing,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.logits import parts, rows
from conformkit.conformance.evidence.text_slips import of_text
from conformkit.conformance.probing.kept_graphs import GOES_ON
from conformkit.conformance.probing.refusals import is_refusal
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.outcomes import Outcome
from conformkit.conformance.text import one_line
from conformkit.spec.arrays import Array
from conformkit.spec.generation import continue_greedily

__all__ = [
    "GREEDY",
    "Story",
    "author",
    "check_text",
    "context_of",
    "continued",
    "generated",
    "is_cut_short",
    "newest",
    "plain",
    "prompt_ids",
    "read_logits",
    "story",
    "written",
]


GREEDY: Mapping[str, Any] = {"greedy": True}
SAMPLED: Mapping[str, Any] = {"temperature": 1.0}
_DIGITS = re.compile(r"\d+")
_MOST_WORDS = 100
MARGIN = 3e-3
"""Lead of the best logit, relative to the spread of all logits: hundreds of times float32's rounding."""
_ALL = 1 << 30
_CERTAIN = 1e4
"""A factor by which such a lead makes the best id certain: any other has a probability below 1e-30."""
_LAST = (("norm.weight", "norm.bias", "head.bias"), ("head.weight", "head.bias"))
"""What logits are proportional to, with a final norm or without one."""


@dataclass(frozen=True, slots=True)
class Story:
    """Prompts (B, T) whose greedy continuation varies, and both together (B, T + n) by the model's own logits."""

    instance: Instance
    prompts: Array
    text: Array

    @property
    def count(self) -> int:
        """The number of new ids."""
        return int(self.text.shape[1] - self.prompts.shape[1])

    def part(self, which: slice) -> Story:
        """Return some of the rows."""
        return Story(self.instance, self.prompts[which], self.text[which])


def plain(model: Subject) -> Mapping[str, Any]:
    """Return the options of the simplest text: sampled where temperature is offered, greedy where it is not."""
    return SAMPLED if model.offers("temperature") else GREEDY


def author(model: Subject, **wanted: Any) -> Instance:
    """Build a model that generates."""
    return model.build(**{"vocab_size": 23, "num_layers": 2, "block_size": 6, **wanted})


def story(instance: Instance, draw: Draw, *, tokens: int, steps: int, keep: int = 8, alike: int = 0) -> Story:
    """Draw weights and prompts until greedy text varies; keep the rows that vary most and have no close choice.

    The first `alike` ids are the same in all prompts.
    """
    length, keep = instance.subject.tokens(tokens), rows(instance.subject, keep)
    chosen: Array = np.empty(0, np.int64)
    margin = 1.5 * instance.subject.no_finer(MARGIN / 1.5)
    for gain in (2.5, 1.5, 4.0, 2.0):
        decided(instance.scatter(draw, gain=gain))
        prompts = draw.ids(instance.sizes["vocab_size"], 640 if instance.subject.half else 32, length)
        prompts[:, :alike] = prompts[0, :alike]
        text, narrowest = _tell(instance, prompts, steps)
        new = text[:, length:]
        variety = np.array([len(set(row)) for row in new.tolist()])
        chosen = np.lexsort((-variety, narrowest <= margin))[:keep]
        chosen = chosen[narrowest[chosen] > margin]
        if instance.subject.half and len(chosen):  # a batch of other rows is rounded otherwise
            again, _ = _tell(instance, prompts[chosen], steps)
            chosen = chosen[(again == text[chosen]).all(axis=-1)]
        if len(chosen) == keep and (keep < 4 or len(np.unique(new[chosen])) >= 4):
            break
    if not len(chosen):
        raise NotApplicable("its logits are too even for a certain greedy text")
    told = Story(instance, prompts[chosen], text[chosen])
    supposing(of_text(partial(read_logits, instance), told.prompts, told.text[:, length:], context_of(instance)))
    return told


def decided(instance: Instance) -> Instance:
    """Make the most probable id of a model that only samples certain: its logits are then thousands of times as large.

    Raises NotApplicable if its binding does not say what to make larger.
    """
    if instance.subject.offers("greedy"):
        return instance
    if instance.subject.half or not instance.subject.bound.rules:
        raise NotApplicable("it only samples, and its logits can't be made so large that one id is certain")
    weights = instance.read()
    last = next((names for names in _LAST if names[0] in weights), ())
    if not last:
        raise NotApplicable("it only samples, and its logits can't be made larger without changing its embeddings")
    return instance.write({name: _CERTAIN * weights[name] for name in last if name in weights})


def _tell(instance: Instance, prompts: Array, steps: int) -> tuple[Array, Array]:
    """Continue greedily by the model's own logits; return ids (B, T + n) and the smallest lead in each row (B,)."""
    narrowest = np.full(len(prompts), np.inf)
    least = 0.5 if instance.subject.half else 1e-30  # probabilities of logits that are closer round to one number

    def logits(context: Array) -> Array:
        out = read_logits(instance, context)  # (B, V)
        ranked = np.sort(out, axis=-1)
        margin = (ranked[:, -1] - ranked[:, -2]) / np.maximum(ranked[:, -1] - ranked[:, 0], least)
        np.minimum(narrowest, margin, out=narrowest)
        return out[:, None]

    return continue_greedily(logits, prompts, steps, context_of(instance)), narrowest


def continued(told: Story, **options: Any) -> Array:
    """Let the implementation continue the prompts of a story, greedily by default; return the new ids."""
    return newest(told.instance, told.prompts, told.count, **{**GREEDY, **options})


def check_text(label: str, told: Story, got: Array) -> None:
    """Check the new ids of a story."""
    check_equal(label, got, told.text[:, told.prompts.shape[1] :])


def newest(instance: Instance, prompts: Array, count: int, **options: Any) -> Array:
    """Let the implementation generate, and return the last `count` ids of each row, whatever comes before them.

    Raises NotApplicable if it refuses, in words, more than block_size ids.
    """
    outcome = generated(instance, prompts, count, **options)
    fits = outcome.out.ndim == 2 and len(outcome.out) == len(prompts) and outcome.out.shape[1] >= count
    check(f"{count} ids after prompts {prompts.shape} are returned in an array {outcome.out.shape}", fits)
    return np.asarray(outcome.out[:, -count:])


def generated(instance: Instance, prompts: Array, count: int, **options: Any) -> Outcome:
    """Let the implementation generate.

    Raises NotApplicable if it refuses, in words, more than block_size ids, or returns no more of them.
    """
    try:
        outcome = instance.generate(prompts, count, **{"seed": 1, **options})
    except ImplementationFailure as failure:
        if prompts.shape[1] + count > instance.sizes["block_size"] and _is_foreseen(failure, instance):
            said = one_line(f"{failure.type}: {failure.message}", _MOST_WORDS)
            raise NotApplicable(f"generate refuses a text longer than block_size: {said}") from None
        raise
    if is_cut_short(instance, prompts, count, outcome.out):
        raise NotApplicable("generate ends where the context is full: GEN-CUT-SHORT says so")
    return outcome


def is_cut_short(instance: Instance, prompts: Array, count: int, out: Array) -> bool:
    """Whether a text (B, ·) that is longer than block_size ends there, after its prompts (B, T)."""
    block_size, length = instance.sizes["block_size"], prompts.shape[1]
    full = (len(prompts), max(length, block_size))
    return length + count > block_size and full[1] < length + count and out.shape == full


def _is_foreseen(failure: ImplementationFailure, instance: Instance) -> bool:
    """Whether a length is refused in words, by generate itself, or by a model whose keys are always kept.

    Such a model may also say it as it says of too many ids at once, and one whose keys have arrays of block_size
    places in any way: there is nothing to crop in them. What any other one says of them is a forgotten crop.
    """
    always_kept = instance.subject.offers("cached-call") and not instance.subject.offers("use-cache")
    if is_refusal(failure):
        return always_kept or not _is_the_model_s(failure, instance, known=False)
    if always_kept and _is_the_model_s(failure, instance, known=True):
        return True
    return failure.kind == "exception" and _writes_into_arrays(instance)


def _writes_into_arrays(instance: Instance) -> bool:
    """Whether a text that fits changes arrays of the model that have block_size places: keys are kept in them.

    Where its call takes the place at which to go on, it keeps them in arrays that it may list nowhere.
    """
    if not GOES_ON.isdisjoint(instance.subject.bound.call.named):
        return True
    held = []
    for first in (0, 1):
        try:
            instance.generate(np.full((1, 1), first), 1, seed=1, **plain(instance.subject))
        except ImplementationFailure:
            return False
        held.append(instance.read_raw())
    places = instance.sizes["block_size"]
    return any(
        places in a.shape and not np.array_equal(a, held[0][name], equal_nan=True) for name, a in held[1].items()
    )


def _is_the_model_s(failure: ImplementationFailure, instance: Instance, *, known: bool) -> bool:
    """Whether the model says the same of one id too many; `known`: that it is an exception of the same type."""
    try:
        instance(np.zeros((1, instance.sizes["block_size"] + 1), np.int64))
    except ImplementationFailure as refused:
        if known:
            return refused.kind == failure.kind == "exception" and refused.type == failure.type
        return _DIGITS.sub("", refused.message) == _DIGITS.sub("", failure.message)
    except ClauseFailure:
        return False
    return False


def written(instance: Instance, prompts: Array, count: int, **options: Any) -> Array:
    """Let the implementation generate; return prompt and new ids (B, T + count), all in the vocabulary."""
    outcome = generated(instance, prompts, count, **options)
    check_shape(f"{count} ids after {prompts.shape[1]}", outcome.out, (len(prompts), prompts.shape[1] + count))
    check(f"the ids are {outcome.dtype}, expected integers", "int" in outcome.dtype)
    size, ids = instance.sizes["vocab_size"], outcome.out.astype(np.int64)
    outside = ids[(ids < 0) | (ids >= size)]
    check(f"id {outside[:1]} is not in 0 … {size - 1}", not outside.size)
    return ids


def context_of(instance: Instance) -> int:
    """Return how many ids are the context of the next one: all of them where nothing sets a block size."""
    bound = instance.subject.bound
    limited = "block_size" in bound.construct.names() or "block_size" in bound.limits.sizes
    return int(instance.sizes["block_size"]) if limited else _ALL


def read_logits(instance: Instance, ids: Array, places: int | Sequence[int] = -1) -> Array:
    """Return the model's own logits (B, V) after each row of ids, in as many calls as its limits need.

    With several `places` in a row, those of each (B, n, V).
    """
    found = []
    for piece in np.array_split(ids[:, -context_of(instance) :], parts(instance.subject, len(ids))):
        out = instance(piece)
        check_shape("the model's logits", out, (*piece.shape, instance.sizes["vocab_size"]))
        found.append(np.asarray(out[:, places], np.float64))
    logits = np.concatenate(found)
    check_finite("the model's logits", logits)
    return logits


def prompt_ids(instance: Instance, draw: Draw, batch: int = 2, tokens: int = 3) -> Array:
    """Draw prompts (B, T)."""
    subject = instance.subject
    return draw.ids(instance.sizes["vocab_size"], rows(subject, batch), subject.tokens(tokens))
