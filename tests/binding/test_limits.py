"""Ranges of sizes: what they allow, and how one overrides another."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.limits import Range, SizeLimits


def test_an_expression_and_bounds_replace_each_other():
    fixed, bounds = Range(equals="d_model"), Range(min=2)
    assert bounds.merged(fixed) == fixed
    assert fixed.merged(bounds) == bounds
    assert SizeLimits({"d_ff": fixed}).merged(SizeLimits()).of("d_ff") == fixed


@pytest.mark.parametrize(("size", "allowed"), [(3, False), (4, True), (6, False), (12, True), (16, False)])
def test_a_range_has_inclusive_bounds_and_a_step(size, allowed):
    assert Range(4, 12, 4).allows(size) is allowed
