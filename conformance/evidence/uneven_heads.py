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
    """Check that a component refuses sizes, or that it has just the numbers of heads of the width in these sizes.

    Projections from D features to H heads of D // H each lose nothing; heads cut from projections of D do.
    """
    width, heads, each = sizes["d_model"], sizes["num_heads"], sizes["head_width"]
    with refusing():
        instance = subject.construct(sizes)
        instance(inputs)
        numbers = sum(math.prod(parameter.shape) for parameter in instance.canonical.values())
        check(
            f"d_model = {width} with num_heads = {heads} was accepted, with {instance.count()} trainable numbers, want "
            f"an exception, or the {numbers} of {heads} heads of width {each}",
            each > 0 and instance.count() == numbers,
        )
