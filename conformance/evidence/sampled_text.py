"""Thousands of draws of the next id, after prompts on which wrong sampling shows.

The prompt is repeated along the batch, so that one call draws once per row. The expected probabilities
come from the implementation's own logits in eval mode, so that a wrong model does not fail again here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.statistics import hits_needed
from conformkit.conformance.evidence.greedy_text import read_logits, written
from conformkit.conformance.evidence.logits import parts
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.generation import next_token_probabilities

__all__ = [
    "DRAWS",
    "FEW",
    "Chances",
    "chances",
    "check_rows",
    "check_set",
    "close",
    "even",
    "halfway",
    "many",
    "p_between",
    "sample",
    "separated",
    "unlike",
    "with_p",
]


DRAWS = 2000
"""Ids drawn to judge a distribution: a share of 0.3 is then known to 0.07."""
FEW = 1000
"""Ids drawn to see which ones occur: an id of probability RARE is missing less than once in 1e8 times."""
RARE = 0.02


@dataclass(frozen=True, slots=True)
class Chances:
    """One prompt (T,) and the logits (V,) of the id after it."""

    instance: Instance
    prompt: Array
    logits: Array

    def expected(self, **options: Any) -> Array:
        """Return the probabilities (V,) of the definition."""
        last = self.instance.subject.variant.temperature_last
        return next_token_probabilities(self.logits, temperature_last=last, **options)

    def ranked(self) -> list[int]:
        """Return the ids from the most to the least probable."""
        return [int(i) for i in np.argsort(-self.logits, kind="stable")]

    def drawn(self, draw: Draw, draws: int = DRAWS, **options: Any) -> Array:
        """Let the implementation draw the next id many times."""
        return sample(self.instance, self.prompt[None], draws, draw, **options)[0, :, 0]


def sample(instance: Instance, prompts: Array, draws: int, draw: Draw, *, count: int = 1, **options: Any) -> Array:
    """Return (R, draws, count) new ids after each of the prompts (R, T), in one call where limits allow it.

    The prompts take turns in the batch, so that neighbors differ.
    """
    batch, seed = np.tile(prompts, (draws, 1)), draw.integer(0, 1 << 30)
    pieces = np.array_split(batch, parts(instance.subject, len(batch)))
    asked = {"temperature": 1.0, **options}
    outs = [written(instance, piece, count, seed=seed + i, **asked)[:, -count:] for i, piece in enumerate(pieces)]
    return np.concatenate(outs).reshape(draws, len(prompts), count).swapaxes(0, 1)


def chances(
    model: Subject, draw: Draw, score: Callable[[Array], Array] | None = None, *, gain: float = 1.4, enough: float = 2.0
) -> Chances:
    """Choose the prompt whose next id suits the clause best; by default one with well separated probabilities.

    A score above `enough` ends the search.
    """
    found: list[tuple[float, Chances]] = []
    for factor in (1.0, 0.75, 1.4):
        instance, prompts, logits = _candidates(model, draw, gain * factor)
        scores = (score or separated)(logits)
        best = int(np.argmax(scores))
        found.append((float(scores[best]), Chances(instance, prompts[best], logits[best])))
        if scores[best] > enough:
            break
    return max(found, key=lambda pair: pair[0])[1]


def _candidates(model: Subject, draw: Draw, gain: float) -> tuple[Instance, Array, Array]:
    """Return a model, the shortest possible prompts, and the logits after each of them."""
    instance = model.build(vocab_size=19, num_layers=1, block_size=6).scatter(draw, gain=gain)
    size, length = instance.sizes["vocab_size"], model.tokens(1)
    prompts = draw.ids(size, 60, length) if length > 1 else np.arange(size)[:, None]
    logits = read_logits(instance, prompts)
    if not model.half:
        return instance, prompts, logits
    apart = _apart(logits) > model.tolerance() / 4  # among logits of half precision there are ties
    if apart.sum() < 2:
        raise NotApplicable.from_formats(f"in {model.precision} its highest logits are too close to each other")
    return instance, prompts[apart], logits[apart]


def _apart(logits: Array, ranks: int = 5) -> Array:
    """Return the gaps between the highest logits of each row (B, V), relative to the spread of all."""
    ranked = -np.sort(-logits, axis=-1)
    gaps = (ranked[:, :-1] - ranked[:, 1:])[:, :ranks].min(axis=-1)
    return np.asarray(gaps / np.maximum(ranked[:, 0] - ranked[:, -1], 1e-30))


def separated(logits: Array, ranks: int = 5) -> Array:
    """Score logits (B, V): above 2 if the highest probabilities are apart, none overwhelming and none rare.

    The most probable ids should be late in the vocabulary, so that ranks and ids differ.
    """
    order = np.argsort(-logits, axis=-1, kind="stable")
    ranked = -np.sort(-next_token_probabilities(logits), axis=-1)[:, : ranks + 1]
    gaps = np.log(np.maximum(ranked[:, :-1], 1e-30) / np.maximum(ranked[:, 1:], 1e-30)).min(axis=-1)
    common = (ranked[:, 0] < 0.6) & (ranked[:, min(ranks, ranked.shape[1]) - 1] > 1.5 * RARE)
    late = (order[:, :2] >= min(3, logits.shape[1] - 2)).all(axis=-1)
    return np.asarray(np.minimum(gaps, 1.0) + 1.0 * common + 1.0 * late)


def even(logits: Array) -> Array:
    """Score logits (B, V) by how even they are."""
    return -np.asarray(next_token_probabilities(logits).max(axis=-1))


def close(logits: Array, gap: float = 0.25) -> Array:
    """Score logits (B, V) by how near the best two are to a gap that leaves a choice at temperature 0.1."""
    ranked = -np.sort(-logits, axis=-1)[:, :2]
    return -np.asarray(np.abs(ranked[:, 0] - ranked[:, -1] - gap))


def unlike(model: Subject, draw: Draw) -> tuple[Instance, Array, Array]:
    """Return a model, two prompts and their logits: the next id is nearly sure after one, and open after the other.

    The fourth most probable id of the open one is above the third of the other by as much as possible, so that filters
    of both rows together keep other ids, and they have few of their four most probable ids in common.
    """
    instance, prompts, logits = _candidates(model, draw, gain=2.0)
    ranked = -np.sort(-next_token_probabilities(logits), axis=-1)
    best = np.argsort(-logits, axis=-1)[:, :4]
    shared = (best[:, None, :, None] == best[None, :, None, :]).sum(axis=(2, 3))
    gain = ranked[None, :, 3] - ranked[:, None, 2] - 0.02 * shared - 1.0 * (ranked[:, None, 0] > 0.9)
    chosen = list(np.unravel_index(int(np.argmax(gain)), gain.shape))
    return instance, prompts[chosen], logits[chosen]


def check_set(label: str, drawn: Array, wanted: Sequence[int], probabilities: Array) -> None:
    """Check that exactly the wanted ids were drawn; ids that are too rare may be missing."""
    counts = np.bincount(drawn, minlength=len(probabilities))
    came = [int(i) for i in np.flatnonzero(counts)]
    details = (f"drawn: {_listed(came)}; wanted: {_listed(wanted)}, the most probable first",)
    outside = [i for i in came if i not in wanted]
    times = int(counts[outside].sum())
    check(
        f"{label}: id {_listed(outside)} was sampled {times} times, expected never", not outside, *details, sampled=True
    )
    sure = [i for i in wanted if probabilities[i] > 0.0 and drawn.size >= hits_needed(float(probabilities[i]))]
    missing = [i for i in sure if i not in came]
    check(
        f"{label}: id {_listed(missing)} was never sampled in {drawn.size} draws", not missing, *details, sampled=True
    )


def check_rows(rows: tuple[Instance, Array, Array], draw: Draw, told: str, **options: Any) -> None:
    """Check which ids come after two `unlike` prompts of one batch, whichever is first; `told` says what filters."""
    instance, prompts, logits = rows
    for order in ([0, 1], [1, 0]):
        drawn = sample(instance, prompts[order], FEW, draw, **options)
        for row, which in enumerate(order):
            law = next_token_probabilities(logits[which], **options)
            under(f"row {row} of two kinds of prompts, {told}")
            check_set("ids", drawn[row, :, 0], np.flatnonzero(law).tolist(), law)


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids)) or "none"


def halfway(probabilities: Array, count: int) -> float:
    """Return a p between the sums of the count - 1 and the count most probable ids, beyond rounding."""
    together = np.concatenate([[0.0], np.cumsum(-np.sort(-probabilities))])
    return float((together[count - 1] + together[count]) / 2.0)


def many(probabilities: Array, share: float = 0.92) -> int:
    """Return how many of the most probable ids reach that sum; at least one is left out."""
    together = np.cumsum(-np.sort(-probabilities))
    return min(int(np.argmax(together >= share)) + 1, len(probabilities) - 1)


def with_p(law: Chances, counts: Sequence[int], **options: Any) -> Iterator[tuple[int, float]]:
    """Yield numbers of ids and the p that keeps as many; a failure names both."""
    probabilities = law.expected(**options)
    first = " ".join(f"{x:.3f}" for x in -np.sort(-probabilities)[:6])
    for count in counts:
        p = halfway(probabilities, count)
        under(f"p = {p:.4g}, which the {count} most probable ids reach: {first} …")
        yield count, p


def p_between(logits: Array, rounding: float = 1e-3) -> float:
    """Return a p that no row of logits (R, V) meets within rounding, with sets as different as possible."""
    together = np.cumsum(-np.sort(-next_token_probabilities(logits), axis=-1), axis=-1)
    best, found = -1.0, 0.5
    for p in np.linspace(0.3, 0.95, 131):
        clear = float(np.abs(together - p).min())
        score = float(np.ptp((together < p).sum(axis=-1))) + 50.0 * min(clear, 0.01)
        if clear > rounding and score > best:
            best, found = score, float(p)
    return found
