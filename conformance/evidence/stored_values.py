"""Goldens, on an implementation that they apply to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, under
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.fixtures import Golden
from conformkit.spec.variants import CANONICAL

__all__ = ["check_goldens"]

DIGITS = 1e-6
"""Some stored values were computed by hand, to six places."""


def check_goldens(
    subject: Subject, goldens: Sequence[Golden], *, tolerance: float | None = None, required: bool = True
) -> None:
    """Check each stored x that the declared variant and limits allow; NotApplicable if there is none.

    `required=False` is for clauses that have other evidence: they hold without an example.
    """
    checked = 0
    for golden in goldens:
        instance = _prepared(subject, golden)
        if instance is not None:
            under(f"golden {golden.number}, {golden.id}, {golden.title}")
            got = instance(np.asarray(golden.inputs["x"], np.float64))
            check_close("output", got, golden.expected, max(DIGITS, tolerance or subject.tolerance()))
            checked += 1
    if required and not checked:
        raise NotApplicable("no stored example has the declared variant and sizes")


def _prepared(subject: Subject, golden: Golden) -> Instance | None:
    """Return an instance with the example's weights, None if variant or limits exclude it."""
    subject = subject.as_asked
    sizes = subject.sizes(**golden.sizes)
    length = golden.inputs["x"].shape[1]
    if subject.tokens(length) != length or any(sizes[name] != size for name, size in golden.sizes.items()):
        return None
    component, theirs = subject.bound.component, CANONICAL.but(**golden.variant)
    if component.parameters(sizes, theirs) != component.parameters(sizes, subject.variant):
        return None
    meant, own = (component.forward(golden.weights, golden.inputs, sizes, v) for v in (theirs, subject.variant))
    if not np.allclose(meant, own, rtol=0.0, atol=DIGITS / 10):
        return None
    instance = subject.construct(sizes)
    return instance.write(golden.weights) if golden.weights else instance
