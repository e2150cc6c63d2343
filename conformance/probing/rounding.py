"""Whether a wrong model has float32 rounding errors too: a table of positions computed in float32.

A right model shows this in its output. For a wrong one, every clause that compares numbers would fail because of
rounding, and no known mistake would reproduce its numbers exactly.
"""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.tolerances import tolerance

__all__ = ["computes_in_float32"]


_LEAST, _MOST = tolerance("float64", 4), 5e-6
"""Relative errors that float32 rounding explains, and float64 rounding does not."""
_LAST = (".out.weight", ".out.bias", ".down.weight", ".down.bias")
_LAST_BUT_PROJECTION = (".v.weight", ".v.bias", ".down.weight", ".down.bias")


def computes_in_float32(instance: Instance) -> bool:
    """Whether a constant array holds float32 numbers, or embeddings and norms return numbers rounded to float32."""
    raw = instance.read_raw()
    constant = [p["name"] for p in instance.listing if not p["trainable"] and p["name"] in raw]
    if any(_is_rounded(raw[name]) for name in constant):
        return True
    with suppress(ImplementationFailure, ClauseFailure, PatternError):  # for clauses to find
        return _rounds_when_silent(instance)
    return False


def _is_rounded(array: Array) -> bool:
    """Whether all numbers are float32 numbers, and some are not whole and have more digits than 0.5."""
    if array.dtype.kind != "f" or not np.isfinite(array).all():
        return False
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    coarse = ((single.view(np.uint32) & np.uint32(0xFFF)) == 0) | (single == np.round(single))
    return bool(np.array_equal(single.astype(np.float64), array) and not coarse.all())


def _rounds_when_silent(instance: Instance) -> bool:
    """Whether the output is off by float32 rounding when every sublayer gives 0."""
    last = _LAST if instance.subject.variant.output_projection else _LAST_BUT_PROJECTION
    ours = instance.canonical.items()
    silent = {
        name: np.zeros(p.shape) for name, p in ours if name.endswith(last) and ("layers." in name or "blocks." in name)
    }
    if not silent:
        return False
    instance.write({**instance.read(), **silent})
    inputs = instance.example_inputs(Draw(0, "rounding"), further=0)
    got, want = instance(*inputs), instance.expected(*inputs)
    if got.shape != want.shape:
        return False
    return bool(_LEAST < np.abs(got - want).max(initial=0.0) / max(np.abs(want).max(initial=0.0), 1e-30) < _MOST)
