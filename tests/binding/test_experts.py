"""Experts: one array each, in a list, or all in one array, found by names and shapes, or declared with {e}."""

import numpy as np
import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.patterns import to_canonical, to_implementation
from conformkit.conformance.binding.rules import parse_rule
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.probing.placements import placements
from conformkit.spec.components import component
from conformkit.spec.variants import Variant

SIZES = {"d_model": 6, "d_ff": 5}
OURS = component("FeedForward").parameters(SIZES, Variant(experts=3, gated=True, ffn_bias=False))


def test_a_list_of_networks_is_read_as_one_array_each():
    each = {"w1": (5, 6), "w3": (5, 6), "w2": (6, 5)}
    theirs = {f"experts.{e}.{name}.weight": shape for e in range(3) for name, shape in each.items()}
    found = next(placements({**theirs, "gate.weight": (3, 6)}, OURS, SIZES, {}, bare=False))
    said = {rule.target: rule.parts[0].name for rule in found}
    assert said["gate.weight"] == "router.weight"
    assert {part for target, part in said.items() if "{" in target} == {"gate.weight", "up.weight", "down.weight"}


def test_gate_and_up_of_all_experts_may_lie_in_one_array():
    theirs = {"router": (6, 3), "gate_up_proj": (3, 6, 10), "down_proj": (3, 5, 6)}
    found = next(placements(theirs, OURS, SIZES, {}, bare=True))
    assert {rule.target: rule.source for rule in found}["down_proj"].startswith("down.weight")


def test_a_rule_with_a_place_for_the_expert_goes_there_and_back():
    rule, up = parse_rule("nets.{e}.up", "up.weight -> m f"), np.arange(90.0).reshape(3, 5, 6)
    theirs = to_implementation([rule], {"up.weight": up}, OURS, SIZES)
    assert [array.shape for array in theirs.values()] == [(6, 5)] * 3
    np.testing.assert_array_equal(to_canonical([rule], theirs, OURS, SIZES)["up.weight"], up)


def test_more_active_experts_than_there_are_are_refused():
    with pytest.raises(ConfigError, match="experts is 2 and experts_active 3"):
        parse_config("[variant]\nexperts = 2\nexperts_active = 3\n")
