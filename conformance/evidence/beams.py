"""The implementation's beam search, and models on which beams differ from greedy text."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check_equal
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.values import ids, numbers, several
from conformkit.conformance.evidence.greedy_text import read_logits
from conformkit.conformance.evidence.trainable_fixtures import trainee
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array
from conformkit.spec.decoding import Model, beam_search

__all__ = ["Beams", "reader", "searched", "searcher"]


_NONE = -1e4
"""Unused beams, where texts are fewer than beams, score -inf or about -1e9; every text scores more than this."""


class Beams:
    """The result of a search: new ids (B, W, n) and scores (B, W)."""

    def __init__(self, new: Array, scores: Array) -> None:
        self.new = new
        self.scores = scores

    def row(self, number: int) -> list[tuple[float, list[int]]]:
        """Return the beams of one row, each with its score, without unused ones."""
        pairs = zip(self.scores[number].tolist(), self.new[number].tolist(), strict=True)
        return [(score, new) for score, new in pairs if score > _NONE]


def searcher(model: Subject, draw: Draw, **wanted: Any) -> Instance:
    """Build a model whose probabilities are neither even nor certain."""
    instance = trainee(model, draw, **{"vocab_size": 5, "block_size": 12, **wanted})
    instance(
        np.zeros((1, model.tokens(1)), np.int64)
    )  # in eval mode, which it stays in: a new model is in training mode
    return instance.scatter(draw, gain=1.2)


def reader(instance: Instance) -> Model:
    """Return the model's own logits (B, V) after ids (B, t), in as few calls as possible."""
    known: dict[bytes, Array] = {}

    def logits(rows: Array) -> Array:
        new = [row for row in rows if row.tobytes() not in known]
        if new:
            for row, found in zip(new, read_logits(instance, np.stack(new)), strict=True):
                known[row.tobytes()] = found
        return np.stack([known[row.tobytes()] for row in rows])

    return logits


def searched(tool: Tool, instance: Instance, prompts: Array, steps: int, width: int, **options: Any) -> Beams:
    """Search, and check the shapes and the prompts."""
    parts = several(
        "beam_search",
        tool(model=instance, ids=prompts, max_new_tokens=steps, beam_width=width, **options), 2,
    )  # fmt: skip
    batch, length = prompts.shape
    found = ids("the beams", parts[0], (batch, width, length + steps))
    scores = numbers("the scores", parts[1], (batch, width))
    check_equal("the prompts at the start", found[..., :length], np.repeat(prompts[:, None], width, axis=1))
    return Beams(found[..., length:], scores)


def clear(model: Model, prompt: Array, steps: int, width: int, **options: Any) -> bool:
    """Whether all continuations that the search compares differ by more than rounding."""
    wide = beam_search(model, prompt, steps, width + 2, **options)
    totals = sorted(score for score, _ in wide)
    return all(other - one > 1e-3 for one, other in itertools.pairwise(totals))
