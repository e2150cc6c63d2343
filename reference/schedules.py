"""Learning rates over time; a step is the number of an update, so the first one is made at step 1.

    cosine:        η(s) = peak · s/w for s < w, then floor + (peak - floor) · (1 + cos(π (s - w)/(n - w))) / 2
    inverse root:  η(s) = D^(-1/2) · min(s^(-1/2), s · w^(-3/2))

s the step, w the steps of warm-up, n the total, D = d_model. Loshchilov & Hutter 2017, eq. 5, with a linear warm-up and
no restarts; Vaswani et al. 2017, eq. 3.
"""

from __future__ import annotations

import math

from conformkit.reference.sizes import check_at_least

__all__ = ["cosine_schedule", "inverse_sqrt_schedule"]


def cosine_schedule(step: int, peak: float, floor: float, warmup: int, total: int) -> float:
    """Rise from 0 to the peak in a straight line, fall to the floor along half a cosine, and stay there.

    Raises: SizeError for a negative step, warm-up or total.
    Source: nanoGPT, `train.py`, `get_lr`.
    """
    check_at_least(0, step=step, warmup=warmup, total=total)
    if step < warmup:
        return peak * step / warmup
    if step >= total:
        return floor
    share = (step - warmup) / (total - warmup)  # of the way down, in [0, 1)
    return floor + (peak - floor) * (1 + math.cos(math.pi * share)) / 2


def inverse_sqrt_schedule(step: int, d_model: int, warmup: int) -> float:
    """Rise in a straight line for `warmup` steps, then fall with the root of the step; 0 at step 0.

    Raises: SizeError for a negative step, or a width or warm-up below 1.
    Source: Vaswani et al. 2017, eq. 3. Differs: at step 0, where the formula divides by 0, the rate is 0.
    """
    check_at_least(0, step=step)
    check_at_least(1, d_model=d_model, warmup=warmup)
    if step == 0:
        return 0.0
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
