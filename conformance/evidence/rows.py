"""Inputs and outputs of components from (B, T, D) to (B, T, D)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.assertions.checks import check_refuses, check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = ["check_sizes_refused", "drawn", "output"]


def drawn(instance: Instance, draw: Draw, batch: int, length: int) -> Array:
    """Return an input x, as long as the declared limits allow."""
    return draw.values(batch, instance.subject.tokens(length), instance.sizes["d_model"])


def output(instance: Instance, x: Array, **options: Any) -> Array:
    """Return the output, its shape checked."""
    out = instance(x, **options)
    check_shape("output", out, x.shape)
    return out


def check_sizes_refused(subject: Subject, draw: Draw, sizes: Mapping[str, Any], what: str) -> None:
    """Check that construction with these sizes fails, or at least the call."""
    x = draw.values(2, subject.tokens(5), sizes["d_model"])
    check_refuses(what, lambda: subject.construct(sizes)(x))
