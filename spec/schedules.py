"""Learning rates over time: Protocols and definitions."""

from __future__ import annotations

import math
from typing import Protocol, runtime_checkable

from conformkit.spec.protocols import Named

__all__ = ["CosineSchedule", "InverseSqrtSchedule", "cosine_schedule", "inverse_sqrt_schedule"]


@runtime_checkable
class CosineSchedule(Named, Protocol):
    """Rise to the peak in a straight line, fall to the floor along half a cosine, stay there.

    Source: Loshchilov and Hutter 2017, eq. 5, with a warm-up and no restarts.
    """

    def __call__(self, step: int, peak: float, floor: float, warmup: int, total: int) -> float: ...


@runtime_checkable
class InverseSqrtSchedule(Named, Protocol):
    """Rise in a straight line, fall with the root of the step. Source: Vaswani et al. 2017, §5.3."""

    def __call__(self, step: int, d_model: int, warmup: int) -> float: ...


def cosine_schedule(step: int, peak: float, floor: float, warmup: int, total: int) -> float:
    """Return the rate of a step: peak · s / w, then floor + (peak - floor) (1 + cos π (s - w) / (n - w)) / 2."""
    if step < warmup:
        return peak * step / warmup
    share = min(1.0, (step - warmup) / (total - warmup))
    return floor + (peak - floor) * (1.0 + math.cos(math.pi * share)) / 2.0


def inverse_sqrt_schedule(step: int, d_model: int, warmup: int) -> float:
    """Return D^-½ · min(s^-½, s · w^-1.5), from step 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
