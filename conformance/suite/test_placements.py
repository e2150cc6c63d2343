"""Clauses of spec/placements.md."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check_close,
    check_differs,
    each_of,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import silent_attention, silent_feed_forward
from conformkit.conformance.evidence.sublayers import check_definition
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

EPS = 1e-3
"""What ε may change in rows that are far larger."""
BEHIND = {"sandwich": ("norm1_after", "norm2_after"), "output": ("norm1", "norm2")}
"""The norms behind attention and behind the network."""
SILENT = {"attention": silent_attention, "the network": silent_feed_forward}


def built(block: Subject, draw: Draw, scale: float = 1.0) -> tuple[Instance, Array]:
    """Return a block whose norms do not shift, and an input."""
    instance = block.build(d_model=12, num_heads=3, d_ff=20).randomize(draw)
    instance.write({n: 0.0 * w for n, w in instance.weights.items() if n.startswith("norm") and n.endswith(".bias")})
    return instance, draw.values(2, block.tokens(5), instance.sizes["d_model"], scale=scale)


def without(instance: Instance, *parts: str) -> Mapping[str, Array]:
    """Return weights with which these sublayers add nothing."""
    return {name: value for part in parts for name, value in SILENT[part](instance).items()}


def added(instance: Instance, x: Array, *silent: str, **more: Array) -> Array:
    """Return what the block adds to x with some sublayers silent, and restore its weights."""
    own = instance.weights
    y = instance.write({**without(instance, *silent), **more})(x)
    instance.write(own)
    return y - x


@clause("PLACE-STREAM")
def test_silent_sublayers_leave_the_stream(block: Subject, draw: Draw) -> None:
    for scale in each_of("scale", [1.0, block.up_to(100.0)]):
        instance, x = built(block, draw, scale)
        silent = without(instance, *SILENT)
        check_close("output", instance.write(silent)(x), x, block.tolerance())


@clause("PLACE-PARALLEL")
def test_both_sublayers_add_what_they_add_alone(block: Subject, draw: Draw) -> None:
    instance, x = built(block, draw)
    alone = added(instance, x, "the network") + added(instance, x, "attention")
    check_close("what the block adds", added(instance, x), alone, block.tolerance(3), scale=3.0)


@clause("PLACE-READS")
def test_sublayers_read_what_the_placement_says(block: Subject, draw: Draw) -> None:
    scale = 1.0 if block.half else 10.0
    instance, x = built(block, draw, scale)
    if block.variant.placement != "output":
        for other, part in each_of("other, part", [("the network", "attention"), ("attention", "the network")]):
            under(f"{part} alone")
            one, seven = added(instance, x, other), added(instance, 7 * x, other)
            check_close("what is added to 7x", seven, one, block.no_finer(EPS), scale=7 * float(np.abs(x).max()))
        return
    if x.shape[1] < 2:
        raise NotApplicable.from_sizes("the declared limits leave sequences of one position")
    even = {
        n: 0.0 * w
        for n, w in instance.weights.items()
        if n.startswith(("attention.q.", "attention.q_rotary.", "attention.k."))
    }
    even |= {n: 0.0 * w for n, w in instance.weights.items() if n.startswith("attention.") and n.endswith(".bias")}
    larger = x.copy()
    larger[:, 0] *= 7.0  # among values that are mixed evenly this one weighs more, unless rows are normalized first
    before, after = (added(instance, z, "the network", **even) for z in (x, larger))
    check_differs("what attention adds at the end, the first row times 7,", after[:, -1], before[:, -1], at_least=0.02)


@clause("PLACE-ADDED")
def test_what_is_added_has_the_size_of_a_norm(block: Subject, draw: Draw) -> None:
    instance, x = built(block, draw)
    if x.shape[-1] < 3:
        raise NotApplicable.from_sizes("rows of two features have no size of their own")
    first, second = BEHIND[block.variant.placement]
    width = instance.sizes["d_model"]
    for norm, part, other, last in (
        (first, "attention", "the network", "attention.out." if block.variant.output_projection else "attention.v."),
        (second, "the network", "attention", "feed_forward.down."),
    ):
        under(f"{part} alone, its last weights times 100")
        plain = {f"{norm}.weight": np.full(width, block.variant.plain_gamma)}
        loud = {n: 100.0 * w for n, w in instance.weights.items() if n.startswith(last)}
        weights = {n: w for n, w in {**plain, **loud}.items() if n in instance.canonical}
        rows = added(instance, x, other, **weights)
        centered = rows - rows.mean(axis=-1, keepdims=True) if block.variant.norm == "layernorm" else rows
        sample = block.variant.norm == "layernorm" and block.variant.norm_deviation == "sample"
        square = (centered**2).sum(axis=-1) / (width - sample)
        check_close("the mean square of each row that is added", square, np.ones_like(square), block.no_finer(0.05))


@clause("PLACE-NORMS")
def test_each_norm_acts_on_its_sublayer(block: Subject, draw: Draw) -> None:
    instance, x = built(block, draw)
    whole = added(instance, x)
    names = sorted(n for n in instance.weights if n.startswith("norm") and n.endswith(".weight"))
    others = {name: {name: draw.uniform(*instance.weights[name].shape, low=1.5, high=3.0)} for name in names}
    for name, other in others.items():
        under(f"another {name}")
        check_differs("what the block adds", added(instance, x, **other), whole, at_least=1e-2)
    for name, other in others.items():
        part = "attention" if name.startswith("norm1") else "the network"
        under(f"another {name}")
        kept = added(instance, x, part)
        check_close(f"what it adds, {part} silent,", added(instance, x, part, **other), kept, block.tolerance(2))


@clause("PLACE-ORACLE")
def test_the_output_is_that_of_the_placement(block: Subject, draw: Draw) -> None:
    check_definition(block, draw)
