"""The mean over many draws of dropout, compared with its expected value.

That mean is the output of evaluation only where everything after the dropout is linear: on attention's weights, on
values, on hidden units, on outputs. On the input of a softmax or of an activation it is not. Where single features are
dropped in front of them, which is legal, the mean is judged with weights or lengths for which the rest is linear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    NotYet,
    check,
    check_differs,
    check_finite,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.sizes import nearest_allowed
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = [
    "check_mean_over_dropout",
    "check_varies_in_training",
    "drops_at_own_rate",
    "drops_what_scores_read",
    "drops_what_units_read",
]

DRAWS = 2000
CALLS = 8
"""Even a mask drawn once per call, not per element, must be right on average."""
SIGMAS = 7.0
"""Standard errors allowed: under a normal distribution, a right mean is further off once in 4e11 entries."""
WHOLE = 4
"""The numbers besides 0 that an entry takes where scores, units, outputs are dropped as a whole: two scores give 4."""
DIGITS = 4
"""Decimal places to which they are told apart, the largest being 1."""


def check_varies_in_training(label: str, one: Array, other: Array, *, at_least: float = 1e-6) -> None:
    """Check that dropout makes two calls differ; NaN is a finding of the clause about the mean over its draws."""
    try:
        check_finite(label, one)
        check_finite(label, other)
    except ClauseFailure as failure:
        raise NotYet("MHA-DROPOUT-MEAN", failure) from None
    check_differs(label, one, other, at_least=at_least)


@dataclass(frozen=True, slots=True)
class _Mean:
    """A mean over draws, compared with evaluation: whether it holds, and the words if it does not."""

    holds: bool
    label: str
    detail: str


def check_mean_over_dropout(
    instance: Instance, x: Array, dropped_in_front: Callable[[], bool], linear: Callable[[], tuple[Instance, Array]]
) -> None:
    """Check that the mean output in training mode, over draws for x (1, T, D), equals that in eval mode.

    Where single features are dropped in front of what is not linear, the instance and the input are those of `linear`.
    """
    found = _mean(instance, x)
    if not found.holds and instance.subject.bound.rules is not None and dropped_in_front():
        found = _mean(*linear())
    check(found.label, found.holds, found.detail, sampled=True)


def drops_what_scores_read(instance: Instance, draw: Draw, part: str = "") -> bool:
    """Whether single features of attention's input, queries or keys are dropped, not only scores or what comes after.

    The first of two positions is 0, so the second output is one value times one weight; the projection behind is the
    identity.
    """
    own = {n: a for n, a in instance.randomize(draw).weights.items() if n.endswith("weight") and n.startswith(part)}
    x = draw.values(1, instance.subject.tokens(2), instance.sizes["d_model"])
    x[:, :-1] = 0.0
    return _kinds(instance, {**own, **_identity(instance, f"{part}out.weight")}, x) > WHOLE


def drops_what_units_read(instance: Instance, draw: Draw, part: str = "") -> bool:
    """Whether single features of a feed-forward network's input are dropped, not only hidden units or outputs."""
    own = {n: a for n, a in instance.randomize(draw).weights.items() if n.endswith("weight") and n.startswith(part)}
    x = draw.values(1, 1, instance.sizes["d_model"])
    return _kinds(instance, {**own, **_identity(instance, f"{part}down.weight")}, x) > WHOLE


def drops_at_own_rate(instance: Instance, *inputs: Array) -> bool:
    """Whether it drops in training mode at a rate that its constructor does not take: 0 cannot be asked for."""
    if instance.subject.offers("dropout"):
        return False
    one, other = (instance(*inputs, mode="train", seed=seed) for seed in (1, 2))
    return not np.array_equal(one, other)


def _mean(instance: Instance, x: Array) -> _Mean:
    draws = nearest_allowed("batch", DRAWS, instance.subject.bound.limits)
    if draws < DRAWS:
        raise NotApplicable.from_sizes(f"its batches are limited to {draws}")
    outputs = _draws(instance, x, draws)
    want = instance(x).astype(np.float64)[0]
    scale = float(np.abs(want).max(initial=0.0))
    allowed = SIGMAS * outputs.std(axis=0) / np.sqrt(draws) + instance.subject.tolerance() * scale
    means = outputs.mean(axis=0)
    error = np.abs(means - want)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(error / np.maximum(allowed, 1e-300))), error.shape))
    return _Mean(
        bool((error <= allowed).all()),
        f"the mean of output{list(at)} over {draws} draws of dropout is {means[at]:.4g}, "
        f"expected {want[at]:.4g} as in eval mode, give or take {allowed[at]:.2g}",
        f"{int((error > allowed).sum())} of {error.size} entries are further off{_factor(means, want, allowed)}",
    )


def _factor(means: Array, want: Array, allowed: Array) -> str:
    """Return in words the one factor by which all means are off, if there is one: what is kept was not scaled."""
    factor = float((means * want).sum() / max(float((want * want).sum()), 1e-300))
    if (np.abs(means - factor * want) > allowed).any():
        return ""
    return f"; all are about {factor:.2f} times what is wanted"


def _draws(instance: Instance, x: Array, draws: int) -> Array:
    """Return outputs in training mode for copies of x (1, T, D), (draws, T, D)."""
    copies = np.repeat(x, draws // CALLS, axis=0)
    outputs = [instance(copies, mode="train", seed=seed) for seed in range(CALLS)]
    return np.concatenate(outputs).astype(np.float64)


def _identity(instance: Instance, name: str) -> Mapping[str, Array]:
    if name not in instance.canonical:
        return {}
    shape = instance.canonical[name].shape
    return {name: np.broadcast_to(np.eye(shape[-2], shape[-1]), shape)}


def _kinds(instance: Instance, weights: Mapping[str, Array], x: Array) -> int:
    """Return how many numbers besides 0 an entry of the last row takes; all else, biases too, is 0, norms are plain."""
    plain = instance.subject.variant.plain_gamma
    norms = {n: np.full(p.shape, plain) for n, p in instance.canonical.items() if "norm" in n and n.endswith("weight")}
    instance.write({**zeros(instance, ""), **norms, **weights})
    outputs = _draws(instance, x, DRAWS // 4)[:, -1]
    moved = outputs - x[0, -1] if instance.subject.name == "TransformerBlock" else outputs
    steps = np.round(moved / max(float(np.abs(moved).max()), 1e-30), DIGITS)
    return max(len(set(column[column != 0.0])) for column in steps.T)
