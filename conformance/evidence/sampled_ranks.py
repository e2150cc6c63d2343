"""Ids of every rank, sampled as often as their probabilities say: a filter may be made for a small vocabulary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.spec.arrays import Array
from conformkit.spec.generation import next_token_probabilities

__all__ = ["EVEN", "check_ranks", "cost_of_draws", "draws_for", "filters"]

EVEN = 0.05
"""A gain of the weights that makes all ids about equally probable."""
_TOP_P, _NEARLY_ALL = 0.9, 0.99
"""The second in further attempts, where a smaller vocabulary shows what is cut off."""
_NO_FEWER = 2
"""A vocabulary that is so little larger than a top-k is there for that top-k alone."""
_MIN_DRAWN, _MAX_DRAWN = 250, 1500
"""Ids that are drawn: more of them from a small vocabulary, which costs less."""
_NUMBERS = 450_000
_PER_LOGIT = 50
_NEVER = 1e-9
_SIGMAS = 7.0
_RANKS = (8, 16, 32, 40, 50, 64, 100, 128, 200, 256, 400, 512, 1000)
_LAST = (16, 8, 4, 2, 1)
"""So many of the least probable ids that are kept may be lost by rounding a number of them."""


def draws_for(vocab_size: int) -> int:
    """Return how many ids are sampled from a vocabulary."""
    return max(_MIN_DRAWN, min(_MAX_DRAWN, _NUMBERS // vocab_size))


def cost_of_draws(vocab_size: int) -> float:
    """Return about how many numbers a model computes for them."""
    return float(draws_for(vocab_size) * vocab_size * _PER_LOGIT)


def filters(vocab_size: int, top_k: int | None, *, top_p: bool, attempt: int = 0) -> list[dict[str, Any]]:
    """Return the options that are compared: no filter, top-k if there is one, and top-p.

    Where there is a top-k, no filter is one of the whole vocabulary: its default may be 50.
    """
    everything = vocab_size if top_k is None or vocab_size > top_k + _NO_FEWER else top_k
    none: dict[str, Any] = {} if top_k is None else {"top_k": everything}
    only_k = [] if top_k is None or everything == top_k else [{"top_k": top_k}]
    return [none, *only_k, *([{**none, "top_p": _NEARLY_ALL if attempt else _TOP_P}] if top_p else [])]


def check_ranks(logits: Array, ids: Array, options: Mapping[str, Any]) -> None:
    """Compare how often the most probable ids, for several numbers of them, are among sampled ids (N,).

    `logits` (V,) are those that all of them were sampled from, with temperature 1 and the filter of `options`.
    """
    probabilities = -np.sort(-next_token_probabilities(logits, **options))
    rank = np.empty(len(logits), np.int64)
    rank[np.argsort(-logits, kind="stable")] = np.arange(len(logits))
    ranks = rank[ids]
    kept = int((probabilities > 0.0).sum())
    listing = ", ".join(f"{name} = {value}" for name, value in options.items()) or "no filter"
    check(
        f"with {listing}, an id of rank {int(ranks.max()) + 1} was sampled, expected the {kept} most probable at most",
        bool(ranks.max() <= kept),  # rounding may decide on the last one
    )
    for most in (most for most in (*_RANKS, kept // 2, 3 * kept // 4, *(kept - n for n in _LAST)) if 0 < most < kept):
        share, want = float((ranks < most).mean()), min(1.0, float(probabilities[:most].sum()))
        allowed = _SIGMAS * float(np.sqrt(want * (1.0 - want) / len(ids))) + 1.0 / len(ids)
        check(
            f"with {listing}, {share:.3f} of the sampled ids are among the {most} most probable, expected {want:.3f}",
            abs(share - want) <= allowed and (share < 1.0 or want ** len(ids) > _NEVER),
        )
