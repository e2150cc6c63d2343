"""Layouts: all possible layouts of parameters in an array of a shape, and no others."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from conformkit.conformance.binding.layouts import layouts
from conformkit.conformance.binding.patterns import shapes, to_canonical, to_implementation
from conformkit.conformance.binding.rules import parse_rule
from conformkit.spec.components import COMPONENTS, Parameter
from conformkit.spec.variants import Variant

HEADS, WIDTH, MODEL = 3, 4, 10
FULL = Variant(qkv_bias=True, output_bias=True, gated=True)


def attention(kv_heads=HEADS):
    sizes = {"d_model": MODEL, "num_heads": HEADS, "kv_heads": kv_heads, "head_width": WIDTH}
    return COMPONENTS["MultiHeadAttention"].parameters(sizes, FULL)


def feed_forward():
    return COMPONENTS["FeedForward"].parameters({"d_model": MODEL, "d_ff": 7}, FULL)


def found(shape, canonical, *, heads=None, out_first=True):
    return list(layouts(shape, canonical, heads=heads, matrices_out_first=out_first))


def sources(*arguments, **options):
    return {layout.source for layout in found(*arguments, **options)}


def test_a_matrix_can_be_stored_in_either_orientation():
    assert sources((12, 10), {"q.weight": attention()["q.weight"]}) == {"q.weight -> (h d) m", "q.weight -> (d h) m"}
    assert sources((10, 12), {"q.weight": attention()["q.weight"]}) == {"q.weight -> m (h d)", "q.weight -> m (d h)"}


def test_a_head_of_one_entry_has_its_matrix_all_the_same():
    """Would break if an axis that happens to have size 1 were taken for one that always has."""
    sizes = {"d_model": 6, "num_heads": 6, "kv_heads": 6, "head_width": 1}
    single = COMPONENTS["MultiHeadAttention"].parameters(sizes, Variant())
    assert "q.weight -> d m" in sources((1, 6), {"q.weight": single["q.weight"]}, heads=6)


def test_a_square_matrix_can_be_stored_in_both():
    square = {"up.weight": Parameter("f m", {"f": 5, "m": 5})}
    assert sources((5, 5), square) == {"up.weight -> f m", "up.weight -> m f"}


@pytest.mark.parametrize("out_first", [True, False], ids=["linear", "bare"])
def test_the_usual_orientation_comes_first(out_first):
    # x @ W stores (in, out); nn.Linear stores (out, in): if both fit, the usual one must be tried first
    square = {"up.weight": Parameter("f m", {"f": 5, "m": 5})}
    best = min(found((5, 5), square, out_first=out_first), key=lambda layout: layout.penalty)
    assert best.axes == ("f m" if out_first else "m f")


def test_three_dimensional_projections_keep_heads_apart():
    assert sources((3, 10, 4), {"q.weight": attention()["q.weight"]}) == {"q.weight -> h m d"}
    assert sources((10, 3, 4), {"out.weight": attention()["out.weight"]}) == {"out.weight -> m h d"}


def test_fused_projections_are_offered_in_every_order():
    projections = {name: attention()[name] for name in ("q.weight", "k.weight", "v.weight")}
    orders = {layout.parts for layout in found((36, 10), projections) if layout.axes == "(s h d) m"}
    assert orders == set(itertools.permutations(projections))


def test_the_usual_order_of_fused_projections_comes_first():
    projections = {name: attention()[name] for name in ("q.weight", "k.weight", "v.weight")}
    best, second, *_ = sorted(found((36, 10), projections), key=lambda layout: layout.penalty)
    assert best.source == "q.weight, k.weight, v.weight -> (s h d) m"
    assert best.penalty < second.penalty


def test_heads_can_be_interleaved_in_a_fused_projection():
    offered = sources((36, 10), attention())
    assert "q.weight, k.weight, v.weight -> (h s d) m" in offered
    assert "q.weight, k.weight, v.weight -> m (h s d)" not in offered


def test_parts_of_unequal_size_are_concatenated():
    axes = {layout.axes for layout in found((20, 10), attention(kv_heads=1)) if len(layout.parts) == 3}
    assert axes == {"(s h d) m"}
    assert not any(len(layout.parts) == 3 for layout in found((36, 10), attention(kv_heads=1)))


def test_parts_of_unequal_size_lie_in_groups_too_one_for_each_key():
    sizes = {"d_model": MODEL, "num_heads": 4, "kv_heads": 2, "head_width": WIDTH}
    canonical = COMPONENTS["MultiHeadAttention"].parameters(sizes, Variant())
    offered = {shape: sources(shape, canonical) for shape in [(32, 10), (2, 16, 10), (2, 4, 4, 10)]}
    assert "q.weight, k.weight, v.weight -> (h s d) m" in offered[32, 10]
    assert "q.weight, k.weight, v.weight -> h (s d) m" in offered[2, 16, 10]
    assert not any("s h" in source for source in offered[2, 16, 10])


def test_keys_and_values_of_a_latent_lie_head_by_head_first():
    sizes = {"d_model": MODEL, "num_heads": HEADS, "head_width": WIDTH, "kv_heads": HEADS}
    widths = {"latent": 6, "query_latent": 0, "rotary_width": 2, "value_width": 5}
    variant = Variant(latent="6", value_width="5", rotary_width="2", positions="rotary")
    canonical = COMPONENTS["MultiHeadAttention"].parameters(sizes | widths, variant)
    best = min(found((27, 6), canonical), key=lambda layout: layout.penalty)
    assert best.source == "k.weight, v.weight -> (h s d) m"
    assert "kv_latent.weight, k_rotary.weight -> (s d) m" in sources((8, 10), canonical)


def test_keys_and_values_can_be_fused_without_queries():
    assert "k.weight, v.weight -> (s h d) m" in sources((8, 10), attention(kv_heads=1))


def test_gate_and_up_can_be_fused_and_biases_with_them():
    assert "gate.weight, up.weight -> (s f) m" in sources((14, 10), feed_forward())
    assert "gate.bias, up.bias -> (s f)" in sources((14,), feed_forward())


def test_up_and_down_are_never_fused():
    assert not any("down.weight" in layout.parts for layout in found((14, 10), feed_forward()))


def test_fused_parts_belong_to_one_component():
    # the queries of one block with the keys of another would reproduce nothing
    two = {f"{place}.{name}": p for place in ("a", "b") for name, p in attention().items() if name.endswith("weight")}
    fused = [layout.parts for layout in found((36, 10), two) if len(layout.parts) == 3]
    assert {frozenset(part[0] for part in parts) for parts in fused} == {frozenset("a"), frozenset("b")}


def test_one_array_a_head_has_the_heads_width():
    assert sources((4, 10), attention(), heads=HEADS) == {
        f"{name}.weight -> d m" for name in ("q", "k", "v", "out")
    }  # fmt: skip
    assert "q.weight, k.weight, v.weight -> (s d) m" in sources((12, 10), attention(), heads=HEADS)


def test_one_array_a_head_counts_the_parts_own_heads():
    # three arrays cannot be the keys of a single key/value head
    assert {layout.parts[0] for layout in found((4, 10), attention(kv_heads=1), heads=3)} == {"q.weight", "out.weight"}


def test_axes_of_one_entry_stand_where_they_are():
    table = {"positions.weight": Parameter("t m", {"t": 9, "m": 12})}
    assert sources((1, 9, 1, 12), table) == {"positions.weight -> 1 t 1 m"}


def test_a_shape_that_nothing_has_has_no_layout():
    assert found((5, 5), attention()) == []
    assert found((), attention()) == []


SHAPES = [(12, 10), (10, 12), (36, 10), (10, 36), (3, 12, 10), (3, 3, 4, 10), (36,), (12,), (3, 12), (24, 10), (14, 10)]


@pytest.mark.parametrize("shape", SHAPES, ids=["x".join(map(str, shape)) for shape in SHAPES])
def test_every_layout_is_a_rule_that_gives_this_shape_and_leads_back(shape):
    canonical = attention() | feed_forward()
    for layout in found(shape, canonical):
        rules = [parse_rule("w", layout.source)]
        assert shapes(rules, canonical) == {"w": shape}
        array = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
        parts = to_canonical(rules, {"w": array}, canonical, {})
        np.testing.assert_array_equal(to_implementation(rules, parts, canonical, {})["w"], array)


def test_no_layout_is_offered_twice():
    for shape in SHAPES:
        offered = [layout.source for layout in found(shape, attention() | feed_forward())]
        assert len(offered) == len(set(offered))
