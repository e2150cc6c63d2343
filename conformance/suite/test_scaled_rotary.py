"""Clauses of spec/scaled_rotary.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check_close, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.rotation_angles import Turn, check_angles, size_of_scores
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.rotary import magnitude

NEAR = 1e-3
"""Rounding to float32 costs less; a factor that is missing, or on one side only, costs more."""


@clause("RSCALE-ANGLES")
def test_each_pair_turns_by_its_scaled_frequency(multi_head: Subject) -> None:
    for width in each_of("width", [32, 64]):
        check_angles(multi_head.build(d_model=width, num_heads=2))


@clause("RSCALE-MAGNITUDE")
def test_rotation_multiplies_queries_and_keys_by_the_declared_factor(multi_head: Subject) -> None:
    instance = multi_head.build(d_model=32, num_heads=2)
    want = magnitude(multi_head.variant)
    size = Turn.of(instance, 0).size / size_of_scores(instance)
    found = np.sqrt(abs(size))
    under(f"queries and keys are multiplied by {found:.6g} each, expected {want:.6g}")
    allowed = max(NEAR, multi_head.tolerance())
    check_close("the size of scores", np.array([size]), np.array([want**2]), allowed, scale=1.0)


@clause("RSCALE-ORACLE")
def test_the_output_is_the_definitions(multi_head: Subject, draw: Draw) -> None:
    for heads, length, causal in each_of("heads, length, causal", [(2, 7, True), (1, 40, True), (2, 17, False)]):
        instance = multi_head.build(d_model=16 * heads, num_heads=heads, causal=causal).randomize(draw)
        x = drawn(instance, draw, 2, length)
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())
