"""What a call may use besides the contract's inputs: positions, their number, a causal mask, one that is required."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.conformance.binding.bound import Bound
from conformkit.spec.arrays import Array
from conformkit.spec.masks import causal_mask

__all__ = ["further_inputs", "positions_of"]

_FIRST = ("ids", "x", "q", "query", "tgt", "src")
"""Inputs whose positions a call is about; a call has one of the first three, or some of the others."""


def positions_of(inputs: Mapping[str, Array]) -> int:
    """Return the number of positions of a call: T of ids (B, T), vectors (B, T, D) or queries (…, T, dk)."""
    name = next((name for name in _FIRST if name in inputs), "")
    shape = inputs[name].shape if name else ()
    return shape[-2 if name == "q" else 1] if len(shape) > 1 else math.prod(shape)


def further_inputs(bound: Bound, sizes: Mapping[str, Any], inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return positions (T,) and (1, T); a mask (Tq, Tk), True = may attend, if causality or the argument asks for one.

    `inputs` are the contract's of this call. An encoder-decoder's calls have all that they use.
    """
    if bound.component.several:
        return {}
    queries = positions_of(inputs)
    keys = positions_of({"q": inputs["k"]}) if "k" in inputs else queries
    places = np.arange(queries)
    found = {} if "q" in inputs else {"positions": places, "position_ids": places[None]}
    if "q" not in inputs and bound.causal == "mask" and sizes.get("causal", True):
        found["mask"] = causal_mask(queries)
    elif bound.mask.required and "mask" not in inputs:
        found["mask"] = np.ones((queries, keys), np.bool_)
    return found
