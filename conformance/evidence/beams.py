"""The implementation's beam search, and models on which beams differ from greedy text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_equal,
    check_shape,
    supposing,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.values import ids, numbers, several
from conformkit.conformance.evidence.greedy_text import read_logits
from conformkit.conformance.evidence.text_slips import of_score
from conformkit.conformance.evidence.trainable_fixtures import trainee
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array
from conformkit.spec.decoding import Model, beam_search, until_end

__all__ = [
    "SCORES", "Beams", "check_penalized", "check_scores", "clear", "every_text", "number_of_texts", "reader",
    "searched", "searcher", "undecided",
]  # fmt: skip

SCORES = 1e-4
"""How far sums of log-probabilities may be apart, in float32."""
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

    def used(self, size: int, steps: int) -> Beams:
        """Return those that a text exists for, of so many new ids: what the others hold is undefined."""
        most = size**steps
        return Beams(self.new[:, :most], self.scores[:, :most])


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
    found = _filled(ids("the beams", parts[0]), length, steps, options.get("eos_id"))
    texts = number_of_texts(instance.sizes["vocab_size"], steps, ends=options.get("eos_id") is not None)
    if found.ndim == 3 and texts <= found.shape[1] < width:
        width = found.shape[1]  # beams beyond the number of texts are not asked for
    check_shape("the beams", found, (batch, width, length + steps))
    scores = numbers("the scores", parts[1], (batch, width))
    check_equal("the prompts at the start", found[..., :length], np.repeat(prompts[:, None], width, axis=1))
    return Beams(found[..., length:], scores)


def number_of_texts(size: int, steps: int, *, ends: bool) -> int:
    """Return how many texts exist: a search for more beams leaves some unused."""
    if not ends:
        return int(size**steps)
    return int((size - 1) ** steps + sum((size - 1) ** before for before in range(steps)))


def _filled(beams: Array, length: int, steps: int, end: int | None) -> Array:
    """Return beams (B, W, T + n) filled up with the end id, where a search stopped since all of them had ended."""
    missing = length + steps - beams.shape[-1]
    ended = end is not None and beams.ndim == 3 and bool((beams[..., length:] == end).any(axis=-1).all())
    if not ended or missing <= 0:
        return beams
    return np.concatenate([beams, np.full((*beams.shape[:2], missing), end)], axis=-1)


def clear(model: Model, prompt: Array, steps: int, width: int, **options: Any) -> bool:
    """Whether all continuations that the search compares differ by more than rounding."""
    wide = beam_search(model, prompt, steps, width + 2, **options)
    totals = sorted(score for score, _ in wide)
    return all(other - one > 1e-3 for one, other in itertools.pairwise(totals))


def undecided() -> NoReturn:
    """Say that no draw is clear: which beams are right is then a matter of rounding."""
    raise NotApplicable("in all texts that were tried, the best ones are too close to one another")


def every_text(size: int, steps: int, end: int) -> list[list[int]]:
    """Return every text of this many ids of a vocabulary, or fewer if it ends earlier."""
    every = itertools.product(range(size), repeat=steps)
    return [list(own) for own in sorted({tuple(until_end(list(new), end)) for new in every})]


def check_scores(beams: Beams, score: Callable[[list[int]], float], end: int | None = None) -> None:
    """Check the scores of one prompt's beams; `score` gives that of a text up to its end."""
    for got, new in beams.row(0):
        own = until_end(new, end)
        want = score(own)
        supposing(of_score(score, own))
        check_close(f"the score of {own}", np.array([got]), np.array([want]), SCORES, scale=max(1.0, -want))


def check_penalized(
    beams: Beams, total: Callable[[list[int]], float], penalty: float, end: int | None,
    every: Iterable[list[int]] = (), *, before: int,
) -> None:  # fmt: skip
    """Check the scores of one prompt's beams, their order, and that the best of `every` text is the first.

    `total` gives the sum of log-probabilities of a text up to its end. It is divided by one of the usual penalties, the
    same for all: the length to the power of α, or GNMT's. So many ids stand `before` each text.
    """
    found = [(score, until_end(new, end)) for score, new in beams.row(0)]
    check(f"the scores are {beams.scores[0].tolist()}, none that of a text", bool(found))

    def by_length(own: list[int]) -> float:
        return float(total(own) / len(own) ** penalty)

    def as_in_gnmt(own: list[int]) -> float:
        return float(total(own) / ((5 + len(own)) / 6) ** penalty)

    score = as_in_gnmt if all(_near(got, as_in_gnmt(own)) for got, own in found) else by_length
    check_scores(beams, score, end)
    falling = [round(got, 4) for got, _ in found]
    falls, label = _fall(falling), f"the scores are {falling}, expected them to fall"
    check(label if falls else f"{label}{_ranked_by(found, total, penalty, before)}", falls)
    if ranked := [(score(own), own) for own in every]:
        (first, text), (best, own) = found[0], max(ranked)
        check(f"the first beam is {text} with {first:.4f}, {own} has {best:.4f}", first > best - SCORES)


def _ranked_by(
    found: list[tuple[float, list[int]]], total: Callable[[list[int]], float], penalty: float, before: int
) -> str:
    """Say in which order texts come that are not in that of their scores."""
    texts = [own for _, own in found]
    orders = {
        "their sums, before the penalty": [total(own) for own in texts],
        "sums whose penalty counts the prompt": [total(own) / (before + len(own)) ** penalty for own in texts],
    }
    known = [words for words, sums in orders.items() if _fall(sums)]
    return f"; the beams are in the order of {' or of '.join(known)}" if known else ""


def _fall(scores: list[float]) -> bool:
    return bool((np.diff(scores) <= SCORES).all())


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= SCORES * max(1.0, abs(other))
