"""The rate of each update of a run, and the schedules besides those that the contract names.

    linear       η(s) = peak · s/w for s < w, then floor + (peak - floor) · (n - s)/(n - w)
    WSD          the same warm-up, the peak, and in the last d of n steps a straight line to the floor
    one cycle    along half a cosine from peak/25 at s = 1 to the peak at s = w, along another to the floor at s = n

s the step, the first update being 1; w the steps of warm-up, n the total. Hu et al. 2024, §4 (WSD: warm-up, stable,
decay); Smith & Topin 2018 (one cycle), whose two lines are half cosines in the libraries that people use.
"""

from __future__ import annotations

import math

from conformkit.reference.schedules import cosine_schedule, inverse_sqrt_schedule
from conformkit.reference.sizes import check_at_least
from conformkit.reference.training.config import TrainingConfig

__all__ = ["one_cycle_schedule", "rate_at", "wsd_schedule"]

START = 25
"""One cycle begins at the peak divided by this."""


def rate_at(config: TrainingConfig, step: int) -> float:
    """Return the rate of an update; the first one is step 1."""
    rate, total = config.optimizer, config.training.steps
    if rate.schedule == "inverse_sqrt":
        return inverse_sqrt_schedule(step, config.model.d_model, rate.warmup)
    if rate.schedule == "cosine":
        return cosine_schedule(step, rate.peak, rate.floor, rate.warmup, total)
    if rate.schedule == "linear":
        return wsd_schedule(step, rate.peak, rate.floor, rate.warmup, total, total - rate.warmup)
    if rate.schedule == "wsd":
        decay = min(rate.decay or total // 10, total - rate.warmup)
        return wsd_schedule(step, rate.peak, rate.floor, rate.warmup, total, max(decay, 1))
    if rate.schedule == "one_cycle":
        return one_cycle_schedule(step, rate.peak, rate.floor, rate.warmup, total)
    return rate.peak * min(1.0, step / max(rate.warmup, 1))


def wsd_schedule(step: int, peak: float, floor: float, warmup: int, total: int, decay: int) -> float:
    """Rise to the peak, stay there, and fall to the floor in the last `decay` steps, each in a straight line.

    Raises: SizeError for a negative step, warm-up or total, or a decay below 1.
    Source: Hu et al. 2024, §4. Differs: the decay is a straight line; theirs is exponential.
    """
    check_at_least(0, step=step, warmup=warmup, total=total)
    check_at_least(1, decay=decay)
    if step < warmup:
        return peak * step / warmup
    share = min(max(total - step, 0) / decay, 1.0)  # of the way that is left, 1 until the decay begins
    return floor + (peak - floor) * share


def one_cycle_schedule(step: int, peak: float, floor: float, warmup: int, total: int) -> float:
    """Rise from a part of the peak to it, then fall to the floor, along half a cosine each.

    Raises: SizeError for a negative step, warm-up or total.
    Source: Smith & Topin 2018. Differs: half cosines in place of lines, and the momentum stays as it is; none from
            `torch.optim.lr_scheduler.OneCycleLR` without that.
    """
    check_at_least(0, step=step, warmup=warmup, total=total)
    if step < warmup:
        return _between(peak / START, peak, max(step - 1, 0) / max(warmup - 1, 1))
    return _between(peak, floor, min((step - warmup) / max(total - warmup, 1), 1.0))


def _between(start: float, end: float, share: float) -> float:
    """Go a share of the way from one rate to another along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * share)) / 2
