"""Clauses of spec/limited_gates.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import expert_share, zeros
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.feed_forward import gated


@clause("GLIM-GATE")
def test_a_gate_is_at_most_the_limit(feed_forward: Subject) -> None:
    limit = feed_forward.variant.gate_limit
    for near in each_of("near", [0.9 * limit, 3.0 * limit, 20.0 * limit]):
        numbers = np.linspace(-near, near, 25)
        once = np.full_like(numbers, 1.0 - feed_forward.variant.gate_offset)
        _check(feed_forward, numbers, once)


@clause("GLIM-UP")
def test_the_other_branch_is_within_the_limit(feed_forward: Subject) -> None:
    limit = feed_forward.variant.gate_limit
    for near in each_of("near", [0.9 * limit, 3.0 * limit, 20.0 * limit]):
        numbers = np.linspace(-near, near, 25)
        _check(feed_forward, np.ones_like(numbers), numbers)


@clause("GLIM-OFFSET")
def test_a_gate_is_multiplied_by_the_other_branch_plus_1(feed_forward: Subject, draw: Draw) -> None:
    few = feed_forward.variant.gate_limit or 3.0
    gates = draw.uniform(24, low=-0.9 * few, high=0.9 * few)
    others = draw.uniform(24, low=-0.9 * few, high=0.9 * few)
    others[:8] = 0.0
    _check(feed_forward, gates, others)


def _check(subject: Subject, gates: Array, others: Array) -> None:
    """Check what a hidden unit gives for each pair of numbers in its two branches."""
    instance = subject.build(d_model=12, d_ff=20)
    width = instance.sizes["d_model"]
    if width < 3:
        raise NotApplicable.from_sizes("two branches and a router need three features")
    weights = zeros(instance, "")
    weights["gate.weight"][..., 0, 0] = 1.0
    weights["up.weight"][..., 0, 1] = 1.0
    weights["down.weight"][..., 0, 0] = 1.0 / expert_share(subject.variant)
    tokens = subject.tokens(len(gates))
    x = np.zeros((-(-len(gates) // tokens), tokens, width))
    rows = x.reshape(-1, width)
    rows[: len(gates), 0], rows[: len(gates), 1], rows[:, -1] = gates, others, 1.0
    x = instance.held(x)
    got = instance.write(weights)(x)[..., 0]
    check_close("what a unit gives", got, gated(x[..., 0], x[..., 1], subject.variant), subject.tolerance())
