"""Whether results in half precision are off by roundings, and by nothing else."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_finite, check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.formats import HALF
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.rounding import SIGMAS, allowed_by, roundings

__all__ = ["check_halves"]

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
    allowed = allowed_by(drawn, want, instance.dtype)
    times = SIGMAS * float((np.abs(got - want) / np.maximum(allowed, 1e-30)).max(initial=0.0))
    check(
        f"{label} is off by up to {times:.3g} standard deviations of drawn roundings, expected at most {SIGMAS:g}",
        times <= SIGMAS,
    )
    gain, usual = _gain(got - want, want), max(_gain(one, want, absolute=True) for one in drawn)
    typical = float(np.sqrt(np.mean([_gain(one, want) ** 2 for one in drawn])))
    limit = max(_TIMES_ON_AVERAGE * typical, usual)
    check(
        f"{label} is on average {1 + gain:.6f} times what the definition gives; roundings explain {limit:.1e}",
        abs(gain) <= limit,
    )


def _gain(error: Array, want: Array, *, absolute: bool = False) -> float:
    """Return the factor, less 1, by which results are larger than they should be."""
    found = float((error * want).sum() / max(float((want**2).sum()), 1e-300))
    return abs(found) if absolute else found
