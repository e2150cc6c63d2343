"""What usually goes wrong where text is written id by id, read in pieces or searched for, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from conformkit.conformance.assertions.suppositions import RIGHT, Slips
from conformkit.spec.arrays import Array

__all__ = ["of_pieces", "of_score", "of_text"]

Reader = Callable[[Array], Array]
"""Returns logits (B, V) of what follows ids (B, t)."""


def _most_probable(logits: Array) -> Array:
    return np.asarray(logits.argmax(axis=-1))


def of_text(logits: Reader, prompts: Array, text: Array, context: int) -> Slips:
    """Return what comes of each slip of greedy text: new ids (B, n) after prompts (B, T), of whose text is `text`."""
    length, steps = prompts.shape[1], text.shape[1]
    read: Mapping[str, Callable[[Array], Array]] = {
        "if only the newest id is read": lambda ids: ids[:, -1:],
        "if the newest id is not read": lambda ids: ids[:, :-1],
        "if each id is chosen after the prompt alone": lambda ids: ids[:, :length],
        "if the prompt is read up to its last id alone": lambda ids: np.delete(ids, length - 1, axis=1),
        "if of the prompt only the last id is read": lambda ids: ids[:, length - 1 :],
        "without the first id of the text": lambda ids: ids[:, 1:],
        "if the last id of the prompt is read twice": lambda ids: np.insert(ids, length, ids[:, length - 1], axis=1),
        "if one id less than the context is read": lambda ids: ids[:, max(ids.shape[1] - context + 1, 0) :],
        "if of a long text the first ids are read, not the last": lambda ids: ids[:, :context],
        "if the text is read in reverse order": lambda ids: ids[:, ::-1],
    }  # fmt: skip
    chosen = {
        "with the second most probable id": lambda z: np.argsort(z, axis=-1)[:, -2],
        "with the least probable id": lambda z: z.argmin(axis=-1),
    }
    whole: Slips = {
        **{words: partial(_written, logits, prompts, steps, context, seen=seen) for words, seen in read.items()},
        **{words: partial(_written, logits, prompts, steps, context, best=best) for words, best in chosen.items()},
    }
    return {RIGHT: partial(np.asarray, text), **whole}


def _written(
    logits: Reader, prompts: Array, steps: int, context: int, *, seen: Callable[[Array], Array] = np.asarray,
    best: Callable[[Array], Array] = _most_probable,
) -> Array:  # fmt: skip
    ids = prompts
    for _ in range(steps):
        part = seen(ids)[:, -context:]
        if not part.shape[1]:
            raise ValueError("nothing to read")
        ids = np.concatenate([ids, best(logits(part))[:, None]], axis=1)
    return np.asarray(ids[:, prompts.shape[1] :])


def of_pieces(read: Callable[..., Array], ids: Array, pieces: Sequence[Array]) -> Slips:
    """Return what comes of each slip of a cache: logits (B, T, V) of ids that come in pieces.

    `read` returns the logits of ids without a cache, at `positions` (B, T) where its call takes some.
    """
    ends = np.cumsum([piece.shape[1] for piece in pieces])
    spans = [(int(end) - piece.shape[1], int(end)) for end, piece in zip(ends, pieces, strict=True)]
    before = [max((one for one, end in spans if end <= first), default=0) for first, _ in spans]

    def each(start: Callable[[int, int], int], shift: Callable[[int], int] | None = None) -> Array:
        found = []
        for (first, end), last in zip(spans, before, strict=True):
            begin = start(first, last)
            places = np.arange(begin, end)
            if shift is not None and first:
                places[first - begin :] += shift(first)
            positions = np.broadcast_to(places, (len(ids), end - begin))
            found.append(read(ids[:, begin:end], positions=positions)[:, first - begin :])
        return np.concatenate(found, axis=1)

    return {
        "if what is cached is not read": partial(each, lambda first, _: first),
        "if what is cached is not read, and positions begin at 0 in each piece": lambda: np.concatenate(
            [read(piece) for piece in pieces], axis=1
        ),
        "if only the piece before is kept": partial(each, lambda _, last: last),
        "if the first cached id is lost": partial(each, lambda first, _: min(first, 1)),
        "if positions begin at 0 in each piece": partial(each, lambda _f, _l: 0, lambda first: -first),
        "if positions of a new piece are one too far": partial(each, lambda _f, _l: 0, lambda _: 1),
        "if positions of a new piece are one too near": partial(each, lambda _f, _l: 0, lambda _: -1),
    }


def of_score(score: Callable[[list[int]], float], text: list[int]) -> Slips:
    """Return what comes of each slip of a text's score, the sum of the log-probabilities of its ids."""
    made: Mapping[str, Callable[[], float]] = {
        "if the score is divided by the number of ids": lambda: score(text) / len(text),
        "if the score is a probability, not its logarithm": lambda: float(np.exp(score(text))),
        "without the last id": lambda: score(text[:-1]),
        "if only the last id counts": lambda: score(text) - score(text[:-1]),
        "without the first id": lambda: score(text) - score(text[:1]),
        "with the opposite sign": lambda: -score(text),
    }
    return {words: partial(_in_array, work_out) for words, work_out in made.items()}


def _in_array(work_out: Callable[[], float]) -> Array:
    return np.array([work_out()])
