"""Ends of texts, caches and beams: Protocol, and beam search by definition (oracle)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.loss import log_softmax
from conformkit.spec.protocols import ArrayT, Named

__all__ = ["BeamSearch", "beam_search", "log_probability", "until_end"]


@runtime_checkable
class BeamSearch(Named, Protocol[ArrayT]):
    """Find the `beam_width` most probable continuations of each row, several at a time, the best first.

    Shapes: ids (B, T) → ids (B, W, T + n), scores (B, W); after an end id a row is filled up
    Units:  scores are log-probabilities in nats, divided by the number of new ids to the power of `length_penalty`.
    Source: Annotated Transformer, Greedy Decoding; Wu et al. 2016, §7.
    """

    def __call__(
        self, model: Any, ids: ArrayT, max_new_tokens: int, beam_width: int, length_penalty: float = 0.0,
        eos_id: int | None = None,
    ) -> tuple[ArrayT, ArrayT]: ...  # fmt: skip


Model = Callable[[Array], Array]
"""From ids (B, t) to the logits (B, V) after them."""


def beam_search(
    model: Model, prompt: Array, steps: int, width: int, *, end: int | None = None, penalty: float = 0.0
) -> list[tuple[float, list[int]]]:
    """Return the `width` best continuations of one prompt (T,), each with its score, the best first.

    An ended continuation is stored separately and no longer occupies a place in the beam.
    """
    live, done = [(0.0, list[int]())], list[tuple[float, list[int]]]()
    for _ in range(steps):
        rows = np.array([[*prompt.tolist(), *new] for _, new in live], np.int64)
        log_p = log_softmax(model(rows))  # (W, V)
        children = [
            (total + float(log_p[n, token]), [*new, token])
            for n, (total, new) in enumerate(live)
            for token in range(log_p.shape[-1])
        ]
        best = sorted(children, key=lambda child: -child[0])[:width]
        done += [child for child in best if child[1][-1] == end]
        live = [child for child in best if child[1][-1] != end]
        if not live:
            break
    scored = [(total / max(len(new), 1) ** penalty, new) for total, new in (*done, *live)]
    return sorted(scored, key=lambda one: -one[0])[:width]


def log_probability(model: Model, prompt: Array, new: list[int]) -> float:
    """Return the sum of the log-probabilities of new ids after a prompt (T,)."""
    total, ids = 0.0, prompt.tolist()
    for token in new:
        total += float(log_softmax(model(np.array([ids], np.int64)))[0, token])
        ids = [*ids, token]
    return total


def until_end(new: list[int], end: int | None) -> list[int]:
    """Return new ids up to and including the first end id."""
    return new[: new.index(end) + 1] if end in new else new
