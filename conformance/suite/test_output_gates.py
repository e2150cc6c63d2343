"""Clauses of spec/output_gates.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check_close, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.layers import linear, sigmoid


@clause("OGATE-SHARE")
def test_heads_that_give_ones_show_their_gates(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [3, 2]):
        instance = _ones(multi_head, draw, heads)
        out: dict[str, Array] = {n: 0.0 * a for n, a in instance.weights.items() if n.startswith("out.")}
        instance.write(out | {"out.weight": np.eye(*out["out.weight"].shape)})
        x = _constant_first(instance, draw)
        gates = _gates(instance, x)
        width = min(x.shape[-1], gates.shape[-1])
        check_close("the gates", output(instance, x)[..., :width], gates[..., :width], multi_head.tolerance())


@clause("OGATE-BEFORE-OUT")
def test_what_is_gated_goes_through_the_output_projection(multi_head: Subject, draw: Draw) -> None:
    instance = _ones(multi_head, draw, 3)
    x = _constant_first(instance, draw)
    want = linear(instance.weights, "out", _gates(instance, x))
    check_close("output", output(instance, x), want, multi_head.tolerance())


@clause("OGATE-ORACLE")
def test_the_output_is_the_definitions(multi_head: Subject, draw: Draw) -> None:
    for heads, causal in each_of("heads, causal", [(3, True), (2, False), (1, True)]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=causal).randomize(draw)
        own = instance.weights
        gate = {n: draw.values(*a.shape) for n, a in own.items() if n.startswith("output_gate.")}
        instance.write(own | gate)
        x = drawn(instance, draw, 2, 6)
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())


def _ones(subject: Subject, draw: Draw, heads: int) -> Instance:
    """Return a layer whose heads give 1 where the first feature is 1; its gate and its output projection are drawn."""
    instance = subject.build(d_model=12, num_heads=heads).randomize(draw)
    own = instance.weights
    weights = zeros(instance, "") | {name: own[name] for name in own if name.startswith("out.")}
    weights |= {n: draw.values(*a.shape) for n, a in own.items() if n.startswith("output_gate.")}
    weights["v.weight"][:, 0] = 1.0
    return instance.write(weights)


def _constant_first(instance: Instance, draw: Draw) -> Array:
    """Return an input whose first feature is 1 everywhere."""
    x = drawn(instance, draw, 2, 5)
    x[..., 0] = 1.0
    return instance.held(x)


def _gates(instance: Instance, x: Array) -> Array:
    """Return the gate of each feature of the heads' outputs, (B, T, H·d)."""
    gates = sigmoid(linear(instance.weights, "output_gate", x))
    width = instance.sizes["num_heads"] * instance.sizes["head_width"]
    return np.repeat(gates, width // gates.shape[-1], axis=-1)
