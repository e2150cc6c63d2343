"""What usually goes wrong in the steps of an optimizer, and in clipping, with the numbers that come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.suppositions import Slips
from conformkit.spec.arrays import Array
from conformkit.spec.optimization import global_norm

__all__ = ["of_adam", "of_clipping"]

_OF_ADAM: Mapping[str, Mapping[str, Any]] = {
    "if neither average is corrected for its start at 0": {"corrected": (False, False)},
    "if the average of squares is not corrected for its start at 0": {"corrected": (True, False)},
    "if the average of gradients is not corrected for its start at 0": {"corrected": (False, True)},
    "if steps are counted from 0": {"ahead": -1},
    "if steps are counted from 2": {"ahead": 1},
    "if the average of squares is corrected by a count that is one too large": {"late": (0, 1)},
    "if the average of gradients is corrected by a count that is one too large": {"late": (1, 0)},
    "if steps are not counted: each average is corrected as in the first step": {"ahead": None},
    "if eps stands inside the root": {"inside": True},
    "without the root of the average of squares": {"power": 1.0},
    "without the division by the average of squares": {"power": 0.0},
    "if the betas are exchanged": {"exchanged": True},
    "if the second average is of gradients, not of their squares": {"powered": np.asarray},
    "if the second average is of absolute values, not of squares": {"powered": np.abs},
    "if both averages weigh old and new gradients the wrong way around": {"turned": (True, True)},
    "if the first average weighs old and new gradients the wrong way around": {"turned": (True, False)},
    "if the second average weighs old and new gradients the wrong way around": {"turned": (False, True)},
    "if both averages are corrected with the first beta": {"corrected_by": (0, 0)},
    "if both averages are corrected with the second beta": {"corrected_by": (1, 1)},
    "if the averages are corrected with each other's beta": {"corrected_by": (1, 0)},
    "if the corrected averages are kept as the averages": {"kept": True},
    "with betas and eps of 0.9, 0.999, 1e-8, whatever is given": {"betas": (0.9, 0.999), "eps": 1e-8},
    "with betas of 0.9 and 0.999, whatever is given": {"betas": (0.9, 0.999)},
    "with an eps of 1e-8, whatever is given": {"eps": 1e-8},
    "if new gradients are added to the averages with weight 1": {"whole": True},
    "if decay is added to the gradient, not taken off the weights": {"decay": "coupled"},
    "if decay is not multiplied by the learning rate": {"decay": "whole"},
    "if decay is added to the weights": {"decay": "added"},
    "without decay": {"decay": "none"},
    "if decay counts twice": {"decay": "twice"},
    "with the opposite sign of the step": {"sign": -1.0},
    "if the largest average of squares so far counts (AMSGrad)": {"largest": True},
    **{
        f"if all parameters share one count, which is {place} in the first step and grows by {by} in each": {
            "stride": by, "ahead": place - 1
        } for by in (2, 3) for place in range(1, by + 1)
    },
}  # fmt: skip


def of_adam(weights: Array, gradients: Sequence[Array], options: Mapping[str, Any], *, moved: bool = False) -> Slips:
    """Return what comes of each slip for one array of weights; with `moved` how far the weights went."""
    from_there = np.asarray(weights, np.float64) if moved else 0.0

    def went(slip: Mapping[str, Any]) -> Array:
        return np.asarray(_adam(weights, gradients, **{**options, **slip}) - from_there)

    return {words: partial(went, slip) for words, slip in _OF_ADAM.items()}


def _adam(
    weights: Array, gradients: Sequence[Array], *, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8, weight_decay: float = 0.01, corrected: tuple[bool, bool] = (True, True),
    corrected_by: tuple[int, int] = (0, 1), ahead: int | None = 0, stride: int = 1, late: tuple[int, int] = (0, 0),
    inside: bool = False, power: float = 0.5, exchanged: bool = False, powered: Callable[[Array], Array] = np.square,
    turned: tuple[bool, bool] = (False, False), whole: bool = False, kept: bool = False, decay: str = "apart",
    sign: float = 1.0, largest: bool = False,
) -> Array:  # fmt: skip
    """Return the weights after these steps of AdamW, with what is said."""
    theta = np.asarray(weights, np.float64)
    mean, square, most = (np.zeros_like(theta) for _ in range(3))
    both = betas[::-1] if exchanged else betas
    first, second = (1.0 - beta if turn else beta for beta, turn in zip(both, turned, strict=True))
    taken = {"coupled": 0.0, "whole": weight_decay / max(lr, 1e-30), "added": -weight_decay, "none": 0.0,
             "twice": 2.0 * weight_decay, "apart": weight_decay}[decay]  # fmt: skip
    for count, gradient in enumerate(gradients, 1):
        step = gradient + weight_decay * theta if decay == "coupled" else gradient
        mean = _average(mean, step, first, whole=whole)
        square = _average(square, powered(step), second, whole=whole)
        most = np.maximum(most, square)
        n = 1 if ahead is None else stride * (count - 1) + 1 + ahead
        by = [1.0 - both[place] ** (n + more) for place, more in zip(corrected_by, late, strict=True)]
        up = mean / by[0] if corrected[0] else mean
        down = (most if largest else square) / (by[1] if corrected[1] else 1.0)
        mean, square = (up, down) if kept else (mean, square)
        under = (down + eps) ** power if inside else down**power + eps
        theta = theta - lr * taken * theta - sign * lr * up / under
    return theta


def _average(before: Array, new: Array, beta: float, *, whole: bool) -> Array:
    return np.asarray(beta * before + (new if whole else (1.0 - beta) * new))


def of_clipping(gradients: Mapping[str, Array], limit: float) -> list[Slips]:
    """Return what comes of each slip of clipping, for each of the gradients."""
    total = global_norm(gradients)
    each = [float(np.linalg.norm(gradient)) for gradient in gradients.values()]
    norms = {
        "with the largest norm of a single gradient as that of all": max(each),
        "with the sum of the gradients' norms as that of all": sum(each),
        "with the square of the norm": total**2,
        "with the largest number as the norm": max(float(np.abs(g).max()) for g in gradients.values()),
        "with the sum of absolute values as the norm": sum(float(np.abs(g).sum()) for g in gradients.values()),
        "with the norm of the last gradient as that of all": each[-1],
        "with the norm of the first gradient as that of all": each[0],
        "with the mean of the gradients' norms as that of all": sum(each) / len(each),
    }
    return [_of_clipping(gradient, total, limit, each[-1], norms) for gradient in gradients.values()]


def _of_clipping(gradient: Array, total: float, limit: float, last: float, norms: Mapping[str, float]) -> Slips:
    own, less = float(np.linalg.norm(gradient)), max((total**2 - last**2) ** 0.5, 1e-30)
    made = {
        "without clipping": gradient,
        "if each gradient is clipped by its own norm": gradient * min(1.0, limit / own),
        "if each number is clipped by itself": np.clip(gradient, -limit, limit),
        "if small gradients are made larger, too": gradient * limit / total,
        "if gradients are multiplied by the norm and divided by the limit": gradient * total / limit,
        "if the norm of all is that of all but the last gradient": gradient * min(1.0, limit / less),
        "if gradients are divided by the norm, whatever the limit": gradient / total,
        "if gradients are multiplied by the limit": gradient * limit,
        "if gradients are clipped to a norm of 1, whatever the limit": gradient * min(1.0, 1.0 / total),
        "if the factor is used twice": gradient * min(1.0, limit / total) ** 2,
        "if the limit is taken for that of the squared norm": gradient * min(1.0, (limit / total**2) ** 0.5),
        **{words: gradient * min(1.0, limit / norm) for words, norm in norms.items()},
    }
    return {words: partial(np.asarray, array) for words, array in made.items()}
