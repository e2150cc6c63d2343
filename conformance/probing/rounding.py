"""Whether a component computes in float32 somewhere, where its first output does not show it.

A right one may divide by a square root in float32, or hold a constant of few digits: the head width of a usual probe
is a square, and a residual hides the rest. A wrong one may have a table of positions in float32: every clause that
compares numbers would fail because of rounding, and no known mistake would reproduce its numbers exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.tolerances import tolerance

__all__ = ["computes_in_float32", "imprecision"]


_FLOAT64_ERROR, _FLOAT32_ERROR = tolerance("float64", 4), 5e-6
"""Relative errors that float32 rounding explains, and float64 rounding does not."""
_MOVE, _SMOOTH = 1e-7, 1e-10
"""How far weights move, and the largest second difference of a smooth function: some thousands of the square."""
_UNEVEN: Mapping[str, int] = {
    "d_model": 18, "num_heads": 3, "num_layers": 1, "num_encoder_layers": 1, "num_decoder_layers": 1,
}  # fmt: skip
"""Heads whose width has no square root in any format, and one layer."""
_UNEVEN_SLOPES: Mapping[str, int] = {**_UNEVEN, "d_model": 24, "num_heads": 12}
"""The same for ALiBi, whose slopes are powers of two, exact in every format, with up to eight heads."""
_LAST = (".out.weight", ".out.bias", ".down.weight", ".down.bias")
_LAST_BUT_PROJECTION = (".v.weight", ".v.bias", ".down.weight", ".down.bias")


def imprecision(instance: Instance) -> float:
    """Return the relative error of a component that fits, at the last position of one layer with uneven sizes.

    That position sees every key, so that a mask which hides too little has no part in it. 0 if nothing comes of it.
    """
    subject = instance.subject
    with suppress(ImplementationFailure, ClauseFailure, NotApplicable, PatternError, NoSizeError):
        sizes = _UNEVEN_SLOPES if subject.variant.positions == "alibi" else _UNEVEN
        other = subject.build(dtype=instance.dtype, **sizes).scatter(Draw(0, "precision"))
        other.read()
        draw, leading = Draw(0, "inputs for precision"), subject.bound.leading(2)
        inputs = other.example_inputs(draw, further=0)
        if subject.bound.component.inputs[0] == "q":
            inputs = tuple(draw.values(*leading, 5, width) for width in (3, 3, 7))
        got, want = other(*inputs), other.expected(*inputs)
        if got.shape == want.shape:
            last = np.abs(want[..., -1, :]).max(initial=0.0)
            return float(np.abs(got - want)[..., -1, :].max(initial=0.0) / max(last, 1e-30))
    return 0.0


def computes_in_float32(instance: Instance) -> bool:
    """Whether a constant array holds float32 numbers, or results are rounded to float32 on the way to the output."""
    raw = instance.read_raw()
    constant = [p["name"] for p in instance.listing if not p["trainable"] and p["name"] in raw]
    if any(_is_rounded(raw[name]) for name in constant):
        return True
    with suppress(ImplementationFailure, ClauseFailure, PatternError):  # for clauses to find
        return _moves_in_steps(instance) or _rounds_when_silent(instance)
    return False


def _moves_in_steps(instance: Instance) -> bool:
    """Whether the output moves in steps as its weights move by less than a number of float32 can.

    The second difference of a smooth function is then nothing but rounding, whatever the function is: right or wrong.
    """
    draw, weights = Draw(0, "steps"), instance.read()
    inputs = instance.example_inputs(Draw(0, "rounding"), further=0)
    moves = {name: _MOVE * np.abs(w).max(initial=0.0) * draw.values(*w.shape) for name, w in weights.items()}
    below, here, above = (
        _moved(instance, {name: w + side * moves[name] for name, w in weights.items()}, inputs) for side in (-1, 0, 1)
    )
    step = np.abs(below + above - 2 * here).max(initial=0.0) / max(np.abs(here).max(initial=0.0), 1e-30)
    return bool(_SMOOTH < step < _FLOAT32_ERROR)


def _moved(instance: Instance, weights: Mapping[str, Array], inputs: tuple[Array, ...]) -> Array:
    instance.write(dict(weights))
    return instance(*inputs)


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
    return bool(
        _FLOAT64_ERROR
        < np.abs(got - want).max(initial=0.0) / max(np.abs(want).max(initial=0.0), 1e-30)
        < _FLOAT32_ERROR
    )
