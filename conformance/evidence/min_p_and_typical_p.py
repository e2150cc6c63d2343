"""Shares for min-p and typical p that rounding cannot decide, and prompts after which both show."""

from __future__ import annotations

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.generation import distances_from_entropy, next_token_probabilities

__all__ = ["atypical", "halfway_share", "shares_of_best", "typical", "unequal"]

_APART = 0.1
"""Between the distances of two ids from the entropy, in nats: one of them belongs to a set and the other does not."""
_RARE = 0.03


def halfway_share(probabilities: Array, count: int) -> float:
    """Return a share of the highest probability that exactly `count` ids have, far from any of them."""
    ranked = -np.sort(-probabilities)
    return float(np.sqrt(ranked[count - 1] * ranked[count]) / ranked[0])


def shares_of_best(logits: Array) -> float:
    """Return a min-p that no row of logits (R, V) meets within rounding, and that another row's maximum changes."""
    best, found = -np.inf, 0.3
    ranked = -np.sort(-next_token_probabilities(logits), axis=-1)
    own = ranked / ranked[:, :1]
    for share in np.geomspace(0.05, 0.9, 91):
        clear = float(np.abs(np.log(own / share)).min())
        kept = (own >= share).sum(axis=-1)
        common = (ranked >= share * ranked.max()).sum(axis=-1)
        score = float(np.abs(kept - common).sum()) + 20.0 * min(clear, 0.05)
        if score > best:
            best, found = score, float(share)
    return found


def typical(probabilities: Array, count: int) -> tuple[list[int], float]:
    """Return the `count` most typical ids, and a p that all of them reach together and no fewer do."""
    order = _order(probabilities[None])[0]
    together = np.concatenate([[0.0], np.cumsum(probabilities[order])])
    return order[:count].tolist(), float((together[count - 1] + together[count]) / 2.0)


def atypical(logits: Array, *, count: int) -> Array:
    """Score logits (B, V): above 2.5 if `count` typical ids are apart from the others, common, and not the best."""
    ranked, apart = _apart(logits, count)
    common = ranked[:, : count + 1].min(axis=-1) > _RARE
    lacks_best = ranked[:, :count].max(axis=-1) < ranked.max(axis=-1)
    return np.asarray(apart + 1.0 * common + 1.0 * lacks_best)


def unequal(logits: Array, *, count: int) -> Array:
    """Score logits (B, V): 3 if `count` typical ids are apart from the others and have very different probabilities."""
    ranked, apart = _apart(logits, count)
    kept = ranked[:, :count]
    return np.asarray(apart + np.minimum(np.log(kept.max(axis=-1) / kept.min(axis=-1)), 1.5) / 0.75)


def _apart(logits: Array, count: int) -> tuple[Array, Array]:
    """Return probabilities (B, V), the most typical first, and how far, up to 1, `count` are from the others (B,)."""
    probabilities = next_token_probabilities(logits)
    order = _order(probabilities)
    distances = np.take_along_axis(distances_from_entropy(probabilities), order, axis=-1)
    apart = np.minimum((distances[:, count] - distances[:, count - 1]) / _APART, 1.0)
    return np.take_along_axis(probabilities, order, axis=-1), apart


def _order(probabilities: Array) -> Array:
    return np.argsort(distances_from_entropy(probabilities), axis=-1, kind="stable")
