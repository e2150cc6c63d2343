"""Objects that must compute the same: a component and its copies."""

from __future__ import annotations

from conformkit.conformance.assertions.checks import check_close
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.for_each_component import depth
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["check_same", "fresh", "trainable", "twin"]


def check_same(label: str, got: Array, want: Array, instance: Instance) -> None:
    """Check that two results of one implementation agree; right code may round in another order."""
    check_close(label, got, want, instance.subject.tolerance(depth(instance)))


def trainable(instance: Instance) -> dict[str, Array]:
    """Return the values of an instance's trainable parameters, by name."""
    raw = instance.read_raw()
    return {p["name"]: raw[p["name"]] for p in instance.trainable}


def twin(instance: Instance, *, seed: int = 0) -> Instance:
    """Return another object with the same parameters, constructed with another random state."""
    other = instance.subject.construct(instance.sizes, seed=seed)
    other.write_raw(trainable(instance))
    return other


def fresh(instance: Instance) -> Instance:
    """Return an object with the same parameters that was never called: a copy of a new one."""
    try:
        return instance.copy()
    except ImplementationFailure:
        return twin(instance)
