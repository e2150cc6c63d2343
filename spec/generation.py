"""Generation: the distribution of the next token, and the greedy loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.attention import softmax

__all__ = ["continue_greedily", "distances_from_entropy", "next_token_probabilities"]


def next_token_probabilities(
    logits: Array, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None,
    min_p: float | None = None, typical_p: float | None = None, temperature_last: bool = False,
) -> Array:  # fmt: skip
    """Return the probabilities (…, V) that sampling follows: temperature, top-k, top-p, min-p, typical; renormalized.

    top-p keeps the smallest set of most probable ids whose probability reaches p, including the one that crosses p.
    min-p keeps ids with at least that share of the highest probability; typical, the smallest set of ids whose -ln p is
    nearest to its mean and whose probability reaches it. Ties are kept in vocabulary order. With `temperature_last`,
    filters look at the probabilities at temperature 1.
    Source: Holtzman et al. 2020, §3.1; Nguyen et al. 2024, §3; Meister et al. 2023, §4.
    """
    order = np.argsort(-np.asarray(logits, np.float64), axis=-1, kind="stable")
    descending = np.take_along_axis(np.asarray(logits, np.float64), order, axis=-1)
    ranked = softmax(descending / (1.0 if temperature_last else temperature))
    if top_k is not None:
        ranked = _kept(ranked, np.arange(ranked.shape[-1]) < top_k)
    if top_p is not None:
        before = np.cumsum(ranked, axis=-1) - ranked  # probability of all higher ranks
        ranked = _kept(ranked, before < top_p)
    if min_p is not None:
        ranked = _kept(ranked, ranked >= min_p * ranked.max(axis=-1, keepdims=True))
    if typical_p is not None:
        ranked = _kept(ranked, _typical(ranked, typical_p))
    if temperature_last:
        ranked = _kept(softmax(descending / temperature), ranked > 0.0)
    probabilities = np.empty_like(ranked)
    np.put_along_axis(probabilities, order, ranked, axis=-1)
    return probabilities


def _kept(probabilities: Array, kept: Array) -> Array:
    left = np.where(kept, probabilities, 0.0)
    return np.asarray(left / left.sum(axis=-1, keepdims=True))


def _typical(probabilities: Array, share: float) -> Array:
    """Return which ids (…, V) are nearest to the mean of -ln p and reach a share together, the crossing one too."""
    order = np.argsort(distances_from_entropy(probabilities), axis=-1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=-1)
    kept = np.empty(probabilities.shape, np.bool_)
    np.put_along_axis(kept, order, np.cumsum(ranked, axis=-1) - ranked < share, axis=-1)
    return kept


def distances_from_entropy(probabilities: Array) -> Array:
    """Return how far -ln p of each id (…, V) is from its mean: the nearest is the most typical; ∞ where p = 0."""
    surprise = -np.log(np.where(probabilities > 0.0, probabilities, 1.0))
    mean = (probabilities * surprise).sum(axis=-1, keepdims=True)
    return np.where(probabilities > 0.0, np.abs(surprise - mean), np.inf)


def continue_greedily(model: Callable[[Array], Array], ids: Array, steps: int, block_size: int) -> Array:
    """Return ids (B, T) followed by `steps` ids, each the arg max after the last `block_size` ids before it."""
    for _ in range(steps):
        logits = model(ids[:, -block_size:])[:, -1]  # (B, V)
        ids = np.concatenate([ids, logits.argmax(axis=-1)[:, None]], axis=1)
    return ids
