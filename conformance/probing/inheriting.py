"""A whole computes as accurately as its parts do.

A constant in float32 inside a feed-forward puts the feed-forward 1e-8 off, and the block around it, with its residual,
a few 1e-9: less than what a probe takes for float32, more than what a clause allows in float64.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.probing.probe import EXACTLY
from conformkit.spec.components import PARTS

__all__ = ["like_its_parts"]


def like_its_parts(bound: Bound, others: Iterable[Bound]) -> Bound:
    """Return a whole as computing in float32 if a part does, unless its own numbers are exact to float64.

    A whole that fits nowhere shows nothing by its own numbers: any other component speaks for it.
    """
    if bound.dtype != "float64" or bound.precision != "float64" or bound.error <= EXACTLY:
        return bound
    coarse = [other.component.name for other in others if other.precision == "float32"]
    if not bound.fits:
        return replace(bound, precision="float32") if coarse else bound
    within = [name for name in coarse if name in PARTS.get(bound.component.name, ())]
    if not within:
        return bound
    note = f"{bound.component.name} is judged as float32, as {within[-1]} is, which it contains"
    return replace(bound, precision="float32", notes=(*bound.notes, note))
