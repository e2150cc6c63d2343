"""What a call returns first, where conform.toml declares another place as the output."""

from __future__ import annotations

from dataclasses import replace

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.wire.arrays import FOREMOST
from conformkit.conformance.probing.layouts_alike import tells_of_positions
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.components import LOGITS

__all__ = ["first_result", "may_be_meant", "taking_the_first"]


def taking_the_first(bound: Bound) -> Bound:
    """Return how a component is bound so that its first array is its output."""
    config = bound.config
    foremost = (FOREMOST, *config.output[1:]) if isinstance(config.output, tuple) else None
    return replace(bound, config=replace(config, output=foremost), weights_output=None)


def first_result(instance: Instance, inputs: tuple[Array, ...]) -> Array | None:
    """Return the first array of what a call returns; None if what comes first is no array."""
    try:
        return instance.with_bound(taking_the_first(instance.subject.bound)).unchecked(*inputs)[1]
    except ImplementationFailure:
        return None


def may_be_meant(instance: Instance, other: Array, chosen: Array) -> bool:
    """Whether a caller may take an array of another size for the output: it comes first, by its place alone.

    Entries with names are read by them, and a model's hidden states are no logits.
    """
    bound = instance.subject.bound
    declared = bound.config.output
    place = str(declared[0] if isinstance(declared, tuple) else declared)
    hidden = bound.component.name in LOGITS and other.shape[-1:] == (instance.sizes.get("d_model"),)
    return (declared is None or place[:1].isdigit()) and not hidden and tells_of_positions(other, chosen)
