"""Widths that the heads do not divide: refused, or shared by heads that are all as wide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from conformkit.conformance.assertions.checks import check, refusing
from conformkit.conformance.subject.component import Subject
from conformkit.spec.arrays import Array

__all__ = ["check_no_feature_is_dropped"]


def check_no_feature_is_dropped(subject: Subject, sizes: Mapping[str, Any], inputs: Array) -> None:
    """Check that a component refuses sizes, or that it has just the numbers of heads that are all equally wide.

    Projections from D features to H heads of D // H each, or of any other width, lose nothing; heads cut from
    projections of D do.
    """
    width, heads, each = sizes["d_model"], sizes["num_heads"], sizes["head_width"]
    with refusing():
        instance = subject.construct(sizes)
        instance(inputs)
        check(
            f"d_model = {width} with num_heads = {heads} was accepted, with {instance.count()} trainable numbers, "
            f"expected an exception, or the {_numbers(subject, sizes, each)} of {heads} heads of width {each}",
            any(instance.count() == _numbers(subject, sizes, wide) for wide in range(min(1, each), width + 1)),
        )


def _numbers(subject: Subject, sizes: Mapping[str, Any], head_width: int) -> int:
    """Return how many trainable numbers the definition has with heads of some width."""
    parameters = subject.bound.component.parameters({**sizes, "head_width": head_width}, subject.variant)
    return sum(math.prod(parameter.shape) for parameter in parameters.values())
