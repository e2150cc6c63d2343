"""What usually goes wrong in a schedule of learning rates, and the rates that come of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from conformkit.conformance.assertions.suppositions import Slips

__all__ = ["of_cosine", "of_inverse_root"]

_NEXT = (0, -1, 1)
"""Steps count from 0 or from 1: a slip may be off by one step, too."""


class _Cosine(NamedTuple):
    """What a schedule along a cosine is given."""

    peak: float
    floor: float
    warmup: int
    total: int

    def share(self, step: int) -> float:
        return (step - self.warmup) / (self.total - self.warmup)

    def on_curve(self, share: float, turns: float = 1.0, floor: float | None = None) -> float:
        """Return the rate after this share of a fall along half a cosine, or along several."""
        least = self.floor if floor is None else floor
        return least + (self.peak - least) * (1.0 + math.cos(math.pi * turns * share)) / 2.0


def of_cosine(step: int, *, peak: float, floor: float, warmup: int, total: int) -> list[Slips]:
    """Return what comes of each slip, for steps that count from 0 or 1."""
    given = _Cosine(peak, floor, warmup, total)
    return [{words: partial(rate, step + shift, given) for words, rate in _COSINE.items()} for shift in _NEXT]


def of_inverse_root(step: int, width: int, warmup: int) -> list[Slips]:
    """Return the same for the inverse root of width and step."""
    known = [(max(step + shift, 1), width, warmup) for shift in _NEXT]
    return [{words: partial(rate, *given) for words, rate in _INVERSE.items()} for given in known]


_COSINE: Mapping[str, Callable[[int, _Cosine], float]] = {
    "if the fall is counted from step 0, not from the end of the warm-up": lambda s, c: c.on_curve(s / c.total),
    "if the fall is as long as the whole run": lambda s, c: c.on_curve((s - c.warmup) / c.total),
    "if the fall begins at step 0, and is as long as what follows the warm-up": (
        lambda s, c: c.on_curve(s / (c.total - c.warmup))
    ),
    "along a whole cosine": lambda s, c: c.on_curve(c.share(s), 2.0),
    "along a quarter of a cosine, down to the middle": lambda s, c: c.on_curve(c.share(s), 0.5),
    "along the first quarter of a cosine": (
        lambda s, c: c.floor + (c.peak - c.floor) * math.cos(math.pi / 2 * c.share(s))
    ),
    "in a straight line": lambda s, c: c.peak - (c.peak - c.floor) * c.share(s),
    "along a sine": lambda s, c: c.floor + (c.peak - c.floor) * (1.0 + math.sin(math.pi * c.share(s))) / 2.0,
    "if the cosine gets the share itself, not π times it": lambda s, c: c.on_curve(c.share(s), 1.0 / math.pi),
    "if the rate rises along the curve": lambda s, c: c.on_curve(1.0 - c.share(s)),
    "without the floor": lambda s, c: c.on_curve(c.share(s), floor=0.0),
    "if the floor is added to a fall from the whole peak": lambda s, c: c.floor + c.on_curve(c.share(s), floor=0.0),
    "without the half: the fall is twice as high": (
        lambda s, c: c.floor + (c.peak - c.floor) * (1.0 + math.cos(math.pi * c.share(s)))
    ),
    "if the warm-up goes on": lambda s, c: c.peak * s / c.warmup,
    "if the rate does not fall": lambda _, c: c.peak,
    "with the floor": lambda _, c: c.floor,
}
_INVERSE: Mapping[str, Callable[[int, int, int], float]] = {
    "without the factor of the width": lambda s, _, w: min(s**-0.5, s * w**-1.5),
    "with the root of the width as a factor, not its inverse": lambda s, d, w: d**0.5 * min(s**-0.5, s * w**-1.5),
    "with the inverse of the width, not of its root": lambda s, d, w: min(s**-0.5, s * w**-1.5) / d,
    "without a warm-up": lambda s, d, _: (d * s) ** -0.5,
    "if the warm-up goes on": lambda s, d, w: d**-0.5 * s * w**-1.5,
    "with the larger of the two branches": lambda s, d, w: d**-0.5 * max(s**-0.5, s * w**-1.5),
    "with the inverse of the step, not of its root": lambda s, d, w: d**-0.5 * min(1.0 / s, s * w**-1.5),
    "if the warm-up has the power -1/2": lambda s, d, w: d**-0.5 * min(s**-0.5, s * w**-0.5),
    "if the warm-up has the power -1": lambda s, d, w: d**-0.5 * min(s**-0.5, s / w),
}
