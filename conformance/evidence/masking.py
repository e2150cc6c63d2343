"""The result of `mask_tokens`: which ids were chosen, how they were replaced, and exact bounds on chance for both.

A share of hits is judged by Chernoff's bound as in `statistics`, from the nearer end of an interval if right
functions differ. It holds for exact counts, too: drawing without replacement keeps nearer to the mean than with it
(Hoeffding 1963).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.statistics import divergence, threshold
from conformkit.conformance.assertions.values import ids, several
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array
from conformkit.spec.masked_language import Share

__all__ = ["RATE", "SIZE", "Masked", "Masking", "check_share"]


SIZE, MASK, SPECIAL = 1000, 3, (0, 1, 2, 5)
"""The size of the vocabulary, the mask id, and ids that are never chosen, if code has no others; 0 is padding."""
FALSE_ALARMS = 1e-9
"""The probability that one clause calls a right function wrong."""
RATE = 0.15


@dataclass(frozen=True, slots=True)
class Masked:
    """Ids, and the inputs and labels made from them; `none` is the label of ids that were not chosen."""

    ids: Array
    inputs: Array
    labels: Array
    none: int
    first: int
    """From here on ids are text."""

    @property
    def chosen(self) -> Array:
        """Where there is a label."""
        return np.asarray(self.labels != self.none)

    @property
    def text(self) -> Array:
        """Where an id can be chosen."""
        return np.asarray(self.ids >= self.first)


class Masking:
    """The implementation's function, on ids of SIZE, or of another vocabulary, or with further ids not to be chosen.

    The mask and special ids are those of the code, where it has some of its own, else MASK and SPECIAL.
    """

    def __init__(self, tool: Tool, special: Sequence[int] | None = None, *, size: int = SIZE) -> None:
        own = tool.bound.limits
        self.tool, self._size = tool, size
        self.mask: int = own.get("mask_id", MASK)
        self.usual: Sequence[int] = own.get("special_ids", SPECIAL)
        self.special = self.usual if special is None else special
        self.first = max(self.mask, *self.usual) + 1
        self.told = "special_ids" not in own
        """Whether it is told which ids are special."""

    def __call__(self, given: Array, *, seed: int = 1, probability: float | None = None) -> Masked:
        """Mask ids (B, T); the most frequent label of a first draw at RATE is taken as "not chosen"."""
        inputs, labels = self._draw(given, seed, probability)
        usual = labels if probability is None else self._draw(self.text(60, 20), seed, None)[1]
        values, counts = np.unique(usual, return_counts=True)
        return Masked(given, inputs, labels, int(values[np.argmax(counts)]), self.first)

    def arguments(self, given: Array, probability: float | None = None) -> dict[str, Any]:
        """Return the arguments of the function."""
        share = {} if probability is None else {"probability": probability}
        return {"ids": given, "mask_id": self.mask, "vocab_size": self._size, "special_ids": self.special, **share}

    def rates(self) -> list[float | None]:
        """Return the shares to try: the default, and another one if it can be passed."""
        return [None, 0.5] if self.tool.offers("probability") else [None]

    def text(self, rows: int, length: int, *, special: int = 0) -> Array:
        """Return ids (rows, length + special) from the lower half of the vocabulary, `special` of each row special."""
        words: Array = self.first + np.arange(rows * length).reshape(rows, length) % (SIZE // 2 - self.first)
        if not special or not self.usual:
            return words
        half = length // 2
        begin, middle, end = (np.full((rows, 1), self.usual[n % len(self.usual)]) for n in (1, 3, 2))
        pads = np.full((rows, special - 3), self.usual[0])
        return np.asarray(np.concatenate([begin, words[:, :half], middle, words[:, half:], end, pads], axis=1))

    def _draw(self, given: Array, seed: int, probability: float | None) -> tuple[Array, Array]:
        made = several("mask_tokens", self.tool.seeded(seed, **self.arguments(given, probability)), 2)
        return ids("the inputs", made[0], given.shape), ids("the labels", made[1], given.shape)


def check_share(label: str, hits: int, draws: int, share: Share, *, events: int) -> None:
    """Check that this number of hits is plausible for a share; `events` is how many the clause judges."""
    got = hits / draws
    nearest = min(max(got, share.low), share.high)
    surprising = got != nearest and divergence(hits, draws, nearest) > threshold(events, FALSE_ALARMS)
    want = f"{share.low:.4g}" if share.high - share.low < 1e-3 else f"{share.low:.4g} to {share.high:.4g}"
    check(f"{label}: a share of {got:.4f} of {draws}, expected {want}", not surprising, sampled=True)
