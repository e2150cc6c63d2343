"""Gradients at every size, against finite differences of the output."""

from __future__ import annotations

from conformkit.conformance.assertions.checks import check_close
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case, Domain
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.definition_at_sizes import Built, Padded, drawn_inputs, multiplications, nearest
from conformkit.conformance.evidence.differences import Point, check_gradients, wide_enough
from conformkit.conformance.subject.component import Subject
from conformkit.spec.tolerances import GRADIENT, STEP

__all__ = ["check_gradients_at_sizes"]

_CALLS = 8
"""A case calls a few times and differentiates."""
_INPUTS = frozenset({"tokens", "keys", "batch"})
_HEADS = frozenset({"num_heads", "head_width"})


def check_gradients_at_sizes(subject: Subject, draw: Draw, *, after: str, padded: Padded | None = None) -> None:
    """Check the gradients of a component with respect to its inputs and all parameters, along drawn directions.

    They are those of training mode without dropout, where the output is that of evaluation mode. `after` is the clause
    about small sizes; `padded` adds masks to inputs. Raises NotApplicable in half precision.
    """
    wide_enough([subject])
    trains = subject.offers("dropout") and subject.offers("modes")
    built = Built(subject, draw, **({"dropout": 0.0} if trains else {}))
    how = {"step": STEP[subject.precision], "tolerance": GRADIENT[subject.precision]}

    def check(sizes: Case) -> None:
        instance = built(sizes)
        inputs = drawn_inputs(instance, draw.at(sizes), sizes)
        for ids in (array for array in inputs if array.dtype.kind == "i"):
            ids[:, -1] = ids[:, 0]  # some row of the table is read twice
        if padded is not None:
            inputs, _ = padded(instance, inputs, draw.at(sizes))
        if trains:
            training = instance.call(*inputs, mode="train", seed=1).out
            check_close("the output in training mode", training, instance(*inputs), subject.tolerance())
        point = Point.of(instance, inputs, mode="train" if trains else "eval", seed=1)
        check_gradients(subject.name, point, draw.at(sizes), **how)

    check_at_sizes(
        draw, check, lambda sizes: _CALLS * multiplications(sizes), lambda sizes: nearest(subject, sizes),
        after=after, domain=_domain(subject, draw), coverage="last bands", renew=built.renew,
    )  # fmt: skip


def _domain(subject: Subject, draw: Draw) -> Domain:
    """Return the part of the clause's domain that the component has."""
    taken = {argument.name for argument in subject.bound.component.arguments} | _INPUTS
    if "num_heads" in taken:
        taken = (taken - {"d_model"}) | _HEADS
    if "image_size" in taken:
        taken |= {"patches_per_side"}
    return {name: ends for name, ends in draw.domain.items() if name in taken}
