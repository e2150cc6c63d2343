"""Whether results in half precision are off by roundings, and by nothing else."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_finite, check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.formats import HALF
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.rounding import UNIT, roundings

__all__ = ["check_halves", "unexplained"]

_TIMES = 5.0
"""How many standard deviations one of some thousand results may be off."""
_TIMES_ON_AVERAGE = 5.0
"""The same of an average, whose standard deviation drawn roundings give as well."""


def check_halves(subject: Subject, draw: Draw, **sizes: int) -> int:
    """Check what an object gives in each half precision that it accepts, and return in how many it was."""
    accepted = 0
    for name in (subject.precision,) if subject.half else HALF:
        try:
            instance = subject.build(dtype=name, **sizes).randomize(draw)
            inputs = instance.example_inputs(draw, batch=1, tokens=48)
            got = instance(*inputs)
        except ImplementationFailure:
            continue
        if all(p["dtype"] == name for p in instance.trainable):
            accepted += 1
            _check_roundings(f"{subject.name}: the output in {name}", instance, inputs, got.astype(np.float64))
    return accepted


def _check_roundings(label: str, instance: Instance, inputs: tuple[Array, ...], got: Array) -> None:
    """Compare a result with the definition's, number by number and on average.

    Averages tell a constant that was rounded, or a factor that is slightly off, from roundings, which cancel.
    """
    want = np.asarray(instance.expected(*inputs), np.float64)
    check_shape(label, got, want.shape)
    check_finite(label, got)
    drawn = roundings(instance.defined, instance.weights, instance.named(*inputs), want, instance.dtype)
    allowed = _allowed(drawn, want, instance.dtype)
    times = _TIMES * float((np.abs(got - want) / np.maximum(allowed, 1e-30)).max(initial=0.0))
    check(
        f"{label} is off by up to {times:.3g} standard deviations of drawn roundings, want at most {_TIMES:g}",
        times <= _TIMES,
    )
    gain, usual = _gain(got - want, want), max(_gain(one, want, absolute=True) for one in drawn)
    typical = float(np.sqrt(np.mean([_gain(one, want) ** 2 for one in drawn])))
    limit = max(_TIMES_ON_AVERAGE * typical, usual)
    check(
        f"{label} is on average {1 + gain:.6f} times what the definition gives; roundings explain {limit:.1e}",
        abs(gain) <= limit,
    )


def _allowed(drawn: Array, want: Array, precision: str) -> Array:
    """Return how far each number may be off: as far as the others of its row, and by its own rounding."""
    spread = np.sqrt((drawn**2).mean(axis=0))
    row = np.sqrt((spread**2).mean(axis=-1, keepdims=True))
    return np.asarray(_TIMES * np.maximum(spread, row) + UNIT[precision] * np.abs(want))


def unexplained(
    instance: Instance, inputs: tuple[Array | None, ...], got: Array, want: Array, tolerance: float
) -> Array:  # fmt: skip
    """Return an output with those numbers put right that are too far off for a tolerance, but not for roundings.

    A norm of few features, or a difference that nearly vanishes, makes roundings larger than usual.
    """
    precision = instance.subject.precision
    if precision not in UNIT or got.shape != want.shape:
        return got
    error = np.abs(got.astype(np.float64) - want)
    if not (error > tolerance * float(np.abs(want).max(initial=0.0))).any():
        return got
    drawn = roundings(instance.defined, instance.weights, instance.named(*inputs), want, precision)
    return np.where(error <= _allowed(drawn, want, precision), want, got)


def _gain(error: Array, want: Array, *, absolute: bool = False) -> float:
    """Return the factor, less 1, by which results are larger than they should be."""
    found = float((error * want).sum() / max(float((want**2).sum()), 1e-300))
    return abs(found) if absolute else found
