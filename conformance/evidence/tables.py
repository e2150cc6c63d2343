"""The gradients of the rows of an embedding table."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.differences import check_slope_in_half, compare, slope, slope_of_definition
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.tolerances import GRADIENT, STEP

__all__ = ["TABLE", "check_row_gradient", "table_gradient"]

TABLE = "embedding.weight"
"""The canonical name of the table."""
_MOVE = 0.3
"""Size of a row's entries along a direction: one row alone changes the sum by more than float32's rounding."""


def table_gradient(instance: Instance, ids: Array, cotangent: Array) -> Array:
    """Return the gradient of the embedding, (V, D), up to the scale at which the implementation stores it."""
    found = instance.vjp(ids, cotangent=cotangent, wrt=(), parameters=True).parameters
    shapes = {p["name"]: p["shape"] for p in instance.trainable}
    full = {name: np.zeros(shapes[name]) if grad is None else grad for name, grad in found.items()}
    bound = instance.subject.bound
    none = {name: np.zeros(shape) for name, shape in shapes.items()}
    return bound.to_canonical(full, instance.sizes)[TABLE] - bound.to_canonical(none, instance.sizes)[TABLE]


def check_row_gradient(instance: Instance, ids: Array, token: int, cotangent: Array, draw: Draw) -> None:
    """Check the gradient along the row of one id of the table against the change of the logits."""
    bound, table = instance.subject.bound, instance.weights[TABLE]
    way = np.zeros(table.shape)
    way[token] = draw.values(table.shape[1], scale=_MOVE)
    there, here = (
        bound.to_implementation({**instance.weights, TABLE: t}, instance.sizes) for t in (table + way, table)
    )

    def function(amount: float) -> float:
        return float((instance.write({TABLE: table + amount * way})(ids) * cotangent).sum())

    found = instance.vjp(ids, cotangent=cotangent, wrt=(), parameters=True)
    middle = float((found.out * cotangent).sum())
    if instance.subject.half:  # its own outputs are too coarse for differences
        sloped = slope_of_definition(instance, (ids,), {TABLE: way}, cotangent)
    else:
        sloped = slope(function, STEP[instance.subject.precision], middle)
    instance.write({TABLE: table})
    given = compare(found.parameters, {name: there[name] - here[name] for name in there}, sloped)
    label = f"the derivative along the embedding of id {token}"
    if instance.subject.half:
        check_slope_in_half(label, given, instance, (ids,), {TABLE: way}, cotangent, draw)
    else:
        given.check(label, GRADIENT[instance.subject.precision])
