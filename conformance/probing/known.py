"""A component that is built, called and answers like one that was probed before is bound like that one.

For changed copies of code whose binding is known. Nothing is taken over on trust: signatures, limits, parameters,
what a call returns and how exactly it computes are looked at again. Only the search for weights is left out.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.driver.errors import DriverError
from conformkit.conformance.probing.probe import EXACTLY, FITS_FLOAT32, error_of
from conformkit.conformance.probing.rounding import computes_in_float32, imprecision
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.tolerances import Precision

__all__ = ["Known", "bound_like"]


@dataclass(frozen=True, slots=True)
class Known:
    """A component that has been probed: how it was bound before and after, and what shows that another is like it."""

    before: Bound
    after: Bound
    signs: tuple[Any, ...]

    @classmethod
    def of(cls, before: Bound, subject: Subject) -> Known | None:
        """Return what is known of a component; None where nothing can be taken over. Raises DriverError."""
        after = subject.bound
        if after.failure is not None or not after.fits or after.precision != "float64" or after.dtype != "float64":
            return None
        return cls(before, after, _signs(subject.build()))


def bound_like(subject: Subject, known: Known) -> Bound | None:
    """Return how a component is bound if it is like the known one; None if only a probe can tell."""
    if subject.bound != known.before:
        return None
    with (
        suppress(DriverError, ClauseFailure, NotApplicable, NoSizeError, PatternError),
        np.errstate(all="ignore"),
    ):  # what cannot be built or called is for the probe
        instance = subject.with_bound(known.after).build()
        if _signs(instance) == known.signs and _has_its_methods(instance):
            return _measured(instance)
    return None


def _signs(instance: Instance) -> tuple[Any, ...]:
    """Return its parameters by name and shape, and what a call returns."""
    listed = tuple((p["name"], tuple(p["shape"]), p["trainable"], p["alias"]) for p in instance.listing)
    seen = instance.call(*instance.example_inputs(Draw(0, "abilities"), further=0), watch=True)
    return listed, seen.out.shape, seen.dtype, seen.structure, bool(seen.modes), seen.extra is None


def _has_its_methods(instance: Instance) -> bool:
    """Whether each of its methods gives what the contract's gives in shape."""
    if not instance.subject.bound.methods:
        return True
    from conformkit.conformance.probing.mask_trial import unfit_methods  # noqa: PLC0415 - core does without

    return not list(unfit_methods(instance))


def _measured(instance: Instance) -> Bound | None:
    """Return the binding with how exactly the definition fits; None for errors as small as another format makes."""
    inputs = instance.example_inputs(Draw(0, "weights"), further=0)
    output = instance.scatter(Draw(0, "scatter"))(*inputs)
    bound, error = instance.subject.bound, error_of(instance, instance.read(), inputs, output)
    if error <= EXACTLY:
        return replace(bound, error=error) if imprecision(instance) <= EXACTLY else None
    if error < FITS_FLOAT32:
        return None
    precision: Precision = "float32" if bound.rules and computes_in_float32(instance) else "float64"
    return replace(bound, fits=False, error=np.inf, precision=precision)
