"""Thousands of short texts under one penalty: how often their last id is one that the text held already, and how often.

All texts have one prompt and differ in the ids that were drawn. The probabilities of each last id follow from the
model's own logits after all ids before it, so that nothing but this one step is judged: given what was drawn, it is a
sum of independent draws, and Chernoff's bound holds for it with their mean probability (Hoeffding 1963).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.statistics import divergence, threshold
from conformkit.conformance.evidence.greedy_text import read_logits
from conformkit.conformance.evidence.sampled_text import DRAWS, sample
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.generation import next_token_probabilities
from conformkit.spec.penalties import Penalties, occurrences

__all__ = ["PenalizedTexts", "loud", "written_texts"]

_TRIED = 60
_LONGEST = 12
"""Ids of a text, at most."""
_MAX_OCCURRENCES = 3
"""An id that a text holds more often counts as held so often."""


@dataclass(frozen=True, slots=True)
class PenalizedTexts:
    """Texts (N, T + n) after one prompt of T ids, and the logits (N, V) of the last id."""

    texts: Array
    logits: Array
    prompt: int
    subject: Subject

    @property
    def before(self) -> Array:
        """The texts without their last ids: (N, T + n - 1)."""
        return self.texts[:, :-1]

    @property
    def new(self) -> Array:
        """The ids that were drawn, the last one included: (N, n)."""
        return self.texts[:, self.prompt :]

    def only(self, rows: Array) -> PenalizedTexts:
        """Return some of the texts."""
        return replace(self, texts=self.texts[rows], logits=self.logits[rows])

    def check(
        self, label: str, asked: Penalties, *, temperature: float = 1.0, others: bool = False, distributions: int = 1
    ) -> None:
        """Compare the last ids with the definition; with `others`, only those that the prompt does not hold."""
        logits = asked.applied(self.logits, self.before, self.prompt, self.subject.variant)
        expected, last = next_token_probabilities(logits, temperature=temperature), self.texts[:, -1]
        if others:
            expected[:, np.unique(self.texts[0, : self.prompt])] = 0.0
            kept = expected[np.arange(len(last)), last] > 0.0
            expected, last = expected[kept] / expected[kept].sum(axis=1, keepdims=True), last[kept]
        held = np.minimum(occurrences(self.before, expected.shape[1]), _MAX_OCCURRENCES)[
            kept if others else slice(None)
        ]
        events = list(_events(expected, last, held))
        limit = threshold(distributions * len(events))
        scored = [(divergence(hits, len(last), p), text, hits, p) for text, hits, p in events]
        worst, text, hits, p = max(scored, key=lambda entry: entry[0])
        check(
            f"{label}: {text} was sampled {hits} times in {len(last)} texts, not about {p * len(last):.4g}",
            worst <= limit,
            sampled=True,
        )


def _events(expected: Array, last: Array, held: Array) -> Iterator[tuple[str, int, float]]:
    """Yield what may happen to a last id, how often it did, and its mean probability."""
    rows = np.arange(len(last))
    for times in range(_MAX_OCCURRENCES + 1):
        chosen = held == times
        often = ("not held", "held once", "held twice", "held three times or more")[times]
        yield f"an id that the text had {often}", int(chosen[rows, last].sum()), _mean(expected * chosen)
        for token in range(expected.shape[1]):
            hits = int((chosen[rows, last] & (last == token)).sum())
            yield f"id {token}, which the text had {often},", hits, _mean(expected[:, [token]] * chosen[:, [token]])


def _mean(probabilities: Array) -> float:
    return min(1.0, float(probabilities.sum(axis=1).mean()))


def written_texts(
    instance: Instance, prompt: Array, draw: Draw, count: int, *, temperature: float = 1.0, draws: int = DRAWS,
    **options: float,
) -> PenalizedTexts:  # fmt: skip
    """Let the implementation write `count` ids after one prompt (T,), many times."""
    new = sample(instance, prompt[None], draws, draw, count=count, temperature=temperature, **options)[0]  # (N, n)
    texts = np.concatenate([np.tile(prompt, (len(new), 1)), new], axis=1)
    known, which = np.unique(texts[:, :-1], axis=0, return_inverse=True)
    return PenalizedTexts(texts, read_logits(instance, known)[which.ravel()], len(prompt), instance.subject)


def loud(model: Subject, draw: Draw, pattern: str, *, vocab_size: int = 6, gain: float = 1.4) -> tuple[Instance, Array]:
    """Return a model, and a prompt whose ids repeat as the letters of the pattern do.

    After it, some of its ids have positive logits and others negative ones, as far from 0 as can be found; a single one
    is followed by any other.
    """
    letters, found = sorted(set(pattern)), []
    for factor in (1.0, 0.7, 1.4):
        instance = model.build(vocab_size=vocab_size, num_layers=1, block_size=_LONGEST)
        size = int(instance.sizes["vocab_size"])
        fits = size > len(letters) and model.tokens(len(pattern)) == len(pattern)
        if not fits or instance.sizes["block_size"] < _LONGEST:
            raise NotApplicable.from_sizes("its limits allow no such text")
        instance.scatter(draw, gain=gain * factor)
        chosen = np.stack([draw.permutation(size)[: len(letters)] for _ in range(_TRIED)])  # (N, letters)
        prompts = chosen[:, [letters.index(letter) for letter in pattern]]
        scores = _shown(read_logits(instance, prompts), chosen)
        found.append((float(scores.max()), instance, prompts[int(np.argmax(scores))]))
    _, instance, prompt = max(found, key=lambda entry: entry[0])
    return instance, prompt


def _shown(logits: Array, chosen: Array) -> Array:
    """Score logits (N, V) by what a penalty on some ids (N, n) changes: logits far from 0, ids that are not rare."""
    probabilities = next_token_probabilities(logits)
    if chosen.shape[1] == 1:  # what matters are the other ids, which are drawn
        entropy = -(probabilities * np.log(np.maximum(probabilities, 1e-30))).sum(axis=1)
        return np.asarray(entropy + 0.5 * np.minimum(np.abs(logits), 1.0).mean(axis=1))
    own = np.take_along_axis(logits, chosen, axis=1)
    chances = np.take_along_axis(probabilities, chosen, axis=1)
    far = np.minimum(own.max(axis=1), -own.min(axis=1))
    return np.asarray(np.minimum(far, 1.5) + 4.0 * np.minimum(chances, 0.15).min(axis=1))
