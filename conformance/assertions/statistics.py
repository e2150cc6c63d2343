"""Exact bounds for random draws: how rarely a right implementation may be called wrong.

Frequencies. Let n draws be independent and each hit an event with probability p. For a share a of hits above p,
Chernoff's bound is

    P(hits ≥ a n) ≤ exp(-n K(a, p)),      K(a, p) = a ln(a / p) + (1 - a) ln((1 - a) / (1 - p)),

and the same holds below p: it is the minimum over t of E[exp(t hits)] exp(-t a n), and valid for every n, not only in
the limit. Because n K grows on either side of p, "n K(hits / n, p) exceeds c" is one tail above and one below, and
together they have probability at most 2 exp(-c). With m such events judged side by side, the chance that any of them
exceeds c is at most 2 m exp(-c), whatever their dependence. So c = ln(2 m / α) keeps the chance of any false alarm
below α.

For each distribution, we judge each of the V ids alone, and the 2, 3, … V - 1 most probable ids together: the former
detect an id that is drawn too often, the latter a distribution that is slightly too flat or too steep everywhere. An
event of probability 0 must not occur at all (K is infinite), which makes the support exact.

Independence of two halves of a sample is judged without knowing the distribution. If all N = 2 m draws are independent,
every order of them is equally likely, given how often each id occurs. Let f be the number of equal pairs. Its mean over
all orders is m Σ c (c - 1) / (N (N - 1)), c the counts of the ids. Revealing the order one draw at a time changes the
expected f by at most 2 per step (exchanging two draws touches two pairs), so that by Azuma's inequality, in Hoeffding's
form, either tail beyond t has probability at most exp(-2 t² / (N 2²)) = exp(-t² / (2 N)).

Likelihood. A distribution that is a little sharper or flatter shows in no single frequency, but in the mean of the ids'
log-probabilities. Each term, cut at ln 1e-3 so that it is at most b from its mean, has a known mean and variance given
all draws before it, so by Freedman's inequality (1975) their sum S is further than t from its mean with probability at
most 2 exp(-t² / (2 (s² + b t / 3))), s² the sum of the variances.

α is 1e-7 per clause. With n = 2000 and m = 100 the share of an id of probability 0.3 may be off by 0.07; with N = 2000,
copies show from 265 equal pairs too many in 1000. In float32 the expected probabilities are themselves off by about
1e-6 of their value, which changes n K by less than 1e-3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.spec.arrays import Array

__all__ = [
    "FALSE_ALARMS",
    "Surprise",
    "check_frequencies",
    "check_independent",
    "check_likelihood",
    "divergence",
    "equal_pairs",
    "hits_needed",
    "surprises",
    "threshold",
]


FALSE_ALARMS = 1e-7
"""The probability that one clause calls a right implementation wrong."""
_FACTORS = np.concatenate([[0.0], np.geomspace(1 / 32, 32, 401)])
"""What logits may be multiplied by, as far as it is looked for."""
_SLIGHT, _FEWEST = 0.1, 3
"""A factor nearer to 1, or frequencies of fewer ids, tell nothing."""
_RAREST = 1e-3
"""Lower probabilities count as this one in a likelihood."""


@dataclass(frozen=True, slots=True)
class Surprise:
    """An event that happened too often or too rarely: its name, its count, and its probability."""

    event: str
    hits: int
    draws: int
    probability: float

    def __str__(self) -> str:
        expected = self.draws * self.probability
        return f"{self.event} was sampled {self.hits} times in {self.draws} draws, not about {expected:.4g}"


def divergence(hits: int, draws: int, probability: float) -> float:
    """Return n K(hits / n, p), in nats; infinite for an impossible event that happened."""
    return draws * (_term(hits / draws, probability) + _term(1.0 - hits / draws, 1.0 - probability))


def threshold(events: int, false_alarms: float = FALSE_ALARMS) -> float:
    """Return c: the divergence that none of `events` reaches, except with probability `false_alarms`."""
    return math.log(2.0 * events / false_alarms)


def hits_needed(probability: float, false_alarms: float = FALSE_ALARMS) -> int:
    """Return the number of draws in which an event happens at least once, except with probability `false_alarms`."""
    return 1 if probability >= 1.0 else math.ceil(math.log(false_alarms) / math.log1p(-probability))


def surprises(counts: Array, probabilities: Array, *, distributions: int = 1) -> list[Surprise]:
    """Return the events that are too rare or too frequent in the counts (V,), the worst first.

    `distributions` is the number of distributions that the clause judges: they share its rate of false alarms.
    """
    draws = int(counts.sum())
    limit = threshold(distributions * (2 * len(counts) - 1))
    found = [(divergence(s.hits, s.draws, s.probability), s) for s in _events(counts, probabilities, draws)]
    return [s for excess, s in sorted(found, key=lambda pair: -pair[0]) if excess > limit]


def check_frequencies(label: str, drawn: Array, probabilities: Array, *, distributions: int = 1) -> None:
    """Check that ids were drawn with these probabilities (V,)."""
    outside = drawn[(drawn < 0) | (drawn >= len(probabilities))]
    check(f"{label}: id {outside[:1]} is not in 0 … {len(probabilities) - 1}", not outside.size)
    counts = np.bincount(drawn.astype(np.int64).ravel(), minlength=len(probabilities))
    found = surprises(counts, np.asarray(probabilities, np.float64), distributions=distributions)
    check(
        f"{label}: {found[0] if found else ''}",
        not found,
        *(_as_if(counts, np.asarray(probabilities, np.float64)) if found else ()),
        f"drawn:    {shares(counts / counts.sum())}",
        f"expected: {shares(probabilities)}",
        sampled=True,
    )


def _as_if(counts: Array, probabilities: Array) -> tuple[str, ...]:
    """Return by what the logits are multiplied, where that explains the counts (V,): p^β / Σ p^β for one β."""
    inside = probabilities > 0.0
    if counts[~inside].any() or inside.sum() < _FEWEST:
        return ()
    logs, drawn = np.log(probabilities[inside]), counts[inside]
    scaled = _FACTORS[:, None] * logs  # (F, V)
    scaled -= np.log(np.exp(scaled - scaled.max(axis=1, keepdims=True)).sum(axis=1, keepdims=True)) + scaled.max(
        axis=1, keepdims=True
    )
    best = int((scaled @ drawn).argmax())
    factor = float(_FACTORS[best])
    if abs(math.log(max(factor, 1e-9))) < _SLIGHT or surprises(drawn, np.exp(scaled[best])):
        return ()
    if not factor:
        return ("as if:    all ids that can be drawn were equally probable",)
    return (f"as if:    logits were multiplied by about {factor:.2g} before their softmax",)


def check_likelihood(label: str, probabilities: Array, drawn: Array) -> None:
    """Check that ids (N,), each drawn with its own probabilities (N, V), are as probable on average as they should be.

    It tells a distribution that is a little sharper or flatter, which shows in no single frequency.
    """
    scores = np.log(np.maximum(probabilities, _RAREST))
    means = (probabilities * scores).sum(axis=1)
    spread = float((probabilities * (scores - means[:, None]) ** 2).sum())
    excess = float((np.take_along_axis(scores, drawn[:, None], axis=1)[:, 0] - means).sum())
    got, want = (means.sum() + excess) / len(drawn), means.mean()
    log_odds = math.log(2.0 / FALSE_ALARMS)
    linear = -math.log(_RAREST) * log_odds / 3.0
    allowed = linear + math.sqrt(linear**2 + 2.0 * log_odds * spread)
    message = f"{label} have a mean log-probability of {got:.4f}, not about {want:.4f}, in {len(drawn)} draws"
    check(message, abs(excess) <= allowed, sampled=True)


def equal_pairs(first: Array, second: Array, *, tests: int = 1) -> tuple[int, float, float]:
    """Return the number of equal pairs, the expected number, and the deviation from it that independence allows."""
    pairs = len(first)
    counts = np.unique(np.concatenate([first, second]), return_counts=True)[1].astype(np.float64)
    expected = pairs * float((counts * (counts - 1.0)).sum()) / (2 * pairs * (2 * pairs - 1))
    return int((first == second).sum()), expected, math.sqrt(4 * pairs * math.log(2.0 * tests / FALSE_ALARMS))


def check_independent(label: str, first: Array, second: Array, *, tests: int = 1) -> None:
    """Check that the draws of two rows are pairwise independent."""
    found, expected, allowed = equal_pairs(first, second, tests=tests)
    check(
        f"{label} are equal {found} times in {len(first)}, not about {expected:.4g} as independent ones",
        abs(found - expected) <= allowed,
    )


def shares(values: Array, most: int = 12) -> str:
    """Format probabilities for people."""
    text = " ".join(f"{value:.3f}" for value in values[:most])
    return text + (" …" if len(values) > most else "")


def _events(counts: Array, probabilities: Array, draws: int) -> Iterator[Surprise]:
    for token, (hits, probability) in enumerate(zip(counts, probabilities, strict=True)):
        yield Surprise(f"id {token}", int(hits), draws, float(probability))
    order = np.argsort(-probabilities, kind="stable")
    together = np.minimum(np.cumsum(probabilities[order]), 1.0)
    for rank, hits in enumerate(np.cumsum(counts[order])[:-1]):
        if rank and together[rank] < 1.0 - 1e-9:
            yield Surprise(f"one of the {rank + 1} most probable ids", int(hits), draws, float(together[rank]))


def _term(share: float, probability: float) -> float:
    """Return a ln(a / p), which is 0 for a = 0 and infinite if p = 0 and a is not."""
    if share <= 0.0:
        return 0.0
    return math.inf if probability <= 0.0 else share * math.log(share / probability)
