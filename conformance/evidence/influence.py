"""Which output depends on which input, and which parameters get a gradient at all."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_finite, check_shape, quoted
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["check_all_reached", "check_sees", "influence"]


def influence(instance: Instance, draw: Draw) -> Array:
    """Return how much output t (row) depends on input j (column): the largest gradient, (T, T).

    For components from (B, T, D) to (B, T, …). Element t of a batch of equal sequences is used for output t, so one
    call is enough.
    """
    length = instance.subject.tokens(5)
    x = np.repeat(draw.values(1, length, instance.sizes["d_model"]), length, axis=0)
    out = instance(x)
    check_shape("output", out[..., :1], (length, length, 1))
    cotangent = draw.values(*out.shape) * np.eye(length)[..., None]
    gradient = instance.vjp(x, cotangent=cotangent, parameters=False).inputs["x"]
    check("no gradient from the output reaches x", gradient is not None)
    assert gradient is not None
    check_finite("gradient of x", gradient)
    return np.asarray(np.abs(gradient).max(axis=-1))


def check_sees(dependence: Array, allowed: Array) -> None:
    """Check that every output depends on every allowed input (T, T)."""
    blind = np.argwhere(allowed & (dependence == 0.0))
    listing = ", ".join(f"output {t} of input {j}" for t, j in blind[:4])
    check(f"{len(blind)} outputs do not depend on inputs that they may see", not len(blind), f"for example {listing}")


def check_all_reached(instance: Instance, draw: Draw) -> None:
    """Check that every parameter gets a gradient, and every canonical matrix one that is not 0.

    A bias of keys is not a matrix: the softmax cancels it, and its gradient is rightly 0.
    """
    experts = instance.subject.variant.experts  # each is chosen by some of many positions
    x = draw.values(2, instance.subject.tokens(5 + 32 * experts), instance.sizes["d_model"])
    gradients = instance.vjp(x, cotangent=draw.values(*instance(x).shape)).parameters
    reached = {name: gradient for name, gradient in gradients.items() if gradient is not None}
    left = [name for name in gradients if name not in reached]
    check(f"no gradient reaches {quoted(left)}", not left)
    for name, gradient in instance.subject.bound.to_canonical(reached, instance.sizes).items():
        if name.endswith("weight"):
            check(f"the gradient of {name} is 0", bool(np.abs(gradient).max() > 1e-9))
