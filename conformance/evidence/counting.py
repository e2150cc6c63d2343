"""How many parameters there are, and how many there should be."""

from __future__ import annotations

import math

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.subject.component import Instance

__all__ = ["check_count"]


def check_count(instance: Instance) -> None:
    """Check that an instance has as many trainable numbers as its definition, listing both sides otherwise."""
    have, want = instance.count(), sum(math.prod(parameter.shape) for parameter in instance.canonical.values())
    theirs = ", ".join(f"{p['name']} {tuple(p['shape'])}" for p in instance.counted)
    ours = ", ".join(f"{name} {parameter.shape}" for name, parameter in instance.canonical.items())
    check(
        f"it has {have} trainable numbers, want {want}", have == want,
        f"yours: {theirs or 'none'}", f"the definition's: {ours or 'none'}",
    )  # fmt: skip
