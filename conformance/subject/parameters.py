"""The parameters that a component lists, checked for size before anything is drawn, named or compared by them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.spec.arrays import Array

__all__ = ["check_parameters", "check_same_extent", "readable"]


_MAX_PARAMETERS = 4000
_MOST_AXES = 16
_MOST_NUMBERS = 1 << 24
_LONGEST_NAME = 300


def check_parameters(listing: Sequence[Mapping[str, Any]]) -> None:
    """Raise ClauseFailure for a listing that is too large for the sizes drawn here.

    The extents are the implementation's claim: `zeros(1).expand(10**11)` takes four bytes there, and 745 GiB here.
    """
    if len(listing) > _MAX_PARAMETERS:
        raise ClauseFailure(f"it has {len(listing)} parameters; at most {_MAX_PARAMETERS} are read")
    for name in (p["name"] for p in listing):
        if len(name) > _LONGEST_NAME:
            raise ClauseFailure(
                f"a parameter's name has {len(name)} characters; at most {_LONGEST_NAME} are allowed: {name[:60]}…"
            )
    for p in listing:
        shape = p["shape"] or ()
        if len(shape) > _MOST_AXES:
            raise ClauseFailure(f"its parameter {p['name']} has {len(shape)} axes; at most {_MOST_AXES} are read")
        if any(extent > _MOST_NUMBERS for extent in shape):
            problem = f"its parameter {p['name']} has an extent of more than {_MOST_NUMBERS}"
            raise ClauseFailure(problem)
    # one extent of 0 makes an array empty, and NumPy refuses it all the same if the others are too large
    total = sum(
        math.prod(max(extent, 1) for extent in p["shape"]) for p in listing if p["trainable"] and p["shape"] is not None
    )
    if total > _MOST_NUMBERS:
        raise ClauseFailure(f"its parameters have more than {_MOST_NUMBERS} numbers, which are too many to draw")


def readable(wanted: Sequence[Mapping[str, Any]], found: Mapping[str, Array]) -> None:
    """Raise ClauseFailure unless every requested parameter was read."""
    for name in (p["name"] for p in wanted):
        if name not in found:
            raise ClauseFailure(f"its parameter {name} cannot be read as an array of real numbers")


def check_same_extent(label: str, got: Array, want: Sequence[int]) -> None:
    """Raise ClauseFailure unless an array has the extents of its parameter or input, which autograd guarantees."""
    if got.shape != tuple(want):
        raise ClauseFailure(f"{label} has shape {got.shape}, expected {tuple(want)}")
