"""Weights by patterns: small cases against plain NumPy, and round trips for random sizes."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.binding.patterns import shapes, to_canonical, to_implementation
from conformkit.conformance.binding.rules import PatternError, expand, parse_rule
from conformkit.spec.components import COMPONENTS, Parameter
from conformkit.spec.variants import Variant

HEADS, KV_HEADS, WIDTH, MODEL = 4, 2, 3, 5
FULL = Variant(qkv_bias=True, output_bias=True, gated=True, positions="learned", embedding_norm=True)


def attention(kv_heads=HEADS, heads=HEADS, width=WIDTH, model=MODEL):
    sizes = {"d_model": model, "num_heads": heads, "kv_heads": kv_heads, "head_width": width}
    return COMPONENTS["MultiHeadAttention"].parameters(sizes, FULL)


def values(parameters, dtype=np.float64):
    """Return arrays in which no two entries are equal."""
    found, start = {}, 1.0
    for name, parameter in parameters.items():
        size = int(np.prod(parameter.shape))
        found[name] = (start + np.arange(size)).reshape(parameter.shape).astype(dtype)
        start += size
    return found


def there(lines, parameters, sizes=None, canonical=None):
    rules = [parse_rule(target, source) for target, source in lines.items()]
    return to_implementation(rules, canonical or values(parameters), parameters, sizes or {})


# --- small cases ----------------------------------------------------------------------------------------------------


def test_without_an_arrow_the_array_is_the_canonical_one():
    p = attention()
    np.testing.assert_array_equal(there({"wq": "q.weight"}, p)["wq"], values(p)["q.weight"])


def test_a_conv1d_kernel_is_the_transpose():
    p = attention()
    found = there({"wq": "q.weight -> m (h d)", "wo": "out.weight -> (h d) m"}, p)
    np.testing.assert_array_equal(found["wq"], values(p)["q.weight"].T)
    np.testing.assert_array_equal(found["wo"], values(p)["out.weight"].T)


@pytest.mark.parametrize("order", ["qkv", "vkq", "kqv"])
def test_parts_are_concatenated_in_the_order_listed(order):
    p, names = attention(), [f"{n}.weight" for n in order]
    found = there({"w": f"{', '.join(names)} -> (s h d) m"}, p)["w"]
    np.testing.assert_array_equal(found, np.concatenate([values(p)[n] for n in names]))


def test_a_fused_kernel_is_concatenated_along_its_columns():
    p = attention(KV_HEADS)
    found = there({"w": "q.weight, k.weight, v.weight -> m (s h d)"}, p)["w"]
    want = np.concatenate([values(p)[f"{n}.weight"].T for n in "qkv"], axis=1)
    assert found.shape == (MODEL, (HEADS + 2 * KV_HEADS) * WIDTH)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("axes", ["(h s d) m", "h (s d) m", "h s d m", "m (h s d)"])
def test_each_key_has_its_queries_next_to_it_in_groups(axes):
    # queries 0 and 1 share key 0; regression: all queries were assumed to come first, so other models were unbound
    p = attention(KV_HEADS)
    q, k, v = (values(p)[f"{n}.weight"].reshape(-1, WIDTH, MODEL) for n in "qkv")
    want = np.concatenate([q[:2], k[:1], v[:1], q[2:], k[1:], v[1:]])  # (8, d, m)
    shape = {"(h s d) m": (24, 5), "h (s d) m": (2, 12, 5), "h s d m": (2, 4, 3, 5), "m (h s d)": (24, 5)}[axes]
    found = there({"w": f"q.weight, k.weight, v.weight -> {axes}"}, p)["w"]
    np.testing.assert_array_equal(found.T if axes[0] == "m" else found, want.reshape(shape))


def test_biases_of_unequal_length_are_concatenated():
    p = attention(KV_HEADS)
    found = there({"b": "q.bias, k.bias, v.bias -> (s h d)"}, p)["b"]
    np.testing.assert_array_equal(found, np.concatenate([values(p)[f"{n}.bias"] for n in "qkv"]))


def test_interleaved_heads_hold_the_query_key_and_value_rows_of_one_head_together():
    p = attention()
    found = there({"w": "q.weight, k.weight, v.weight -> (h s d) m"}, p)["w"]
    rows = [values(p)[f"{n}.weight"][h * WIDTH : (h + 1) * WIDTH] for h in range(HEADS) for n in "qkv"]
    np.testing.assert_array_equal(found, np.concatenate(rows))


def latent():
    sizes = {"d_model": MODEL, "num_heads": HEADS, "kv_heads": HEADS, "head_width": WIDTH}
    widths = {"latent": 7, "query_latent": 0, "rotary_width": 2, "value_width": 4}
    variant = Variant(latent="7", value_width="4", rotary_width="2", positions="rotary")
    return COMPONENTS["MultiHeadAttention"].parameters(sizes | widths, variant)


def test_interleaved_heads_hold_parts_of_different_widths():
    """Would break if a head's keys and its wider values could not lie together, as DeepSeek stores them."""
    p = latent()
    rules = [
        parse_rule("w", "k.weight, v.weight -> (h s d) m"),
        parse_rule("a", "kv_latent.weight, k_rotary.weight -> (s d) m"),
    ]
    found = to_implementation(rules, values(p), p, {})
    each = {name: values(p)[f"{name}.weight"].reshape(HEADS, -1, 7) for name in "kv"}
    np.testing.assert_array_equal(found["w"], np.concatenate([each["k"], each["v"]], axis=1).reshape(-1, 7))
    np.testing.assert_array_equal(found["a"][7:], values(p)["k_rotary.weight"])
    back = to_canonical(rules, found, p, {})
    for name in ("k.weight", "v.weight", "kv_latent.weight", "k_rotary.weight"):
        np.testing.assert_array_equal(back[name], values(p)[name])


def test_parts_that_differ_elsewhere_do_not_lie_head_by_head():
    with pytest.raises(PatternError, match="the parts differ"):
        there({"w": "q.weight, k.weight -> (h s d) m"}, latent())


def test_innermost_s_alternates_single_entries():
    p = attention()
    found = there({"b": "k.bias, v.bias -> (h d s)"}, p)["b"]
    np.testing.assert_array_equal(found[0::2], values(p)["k.bias"])
    np.testing.assert_array_equal(found[1::2], values(p)["v.bias"])


def test_three_dimensional_weights_have_heads_first():
    p = attention()
    found = there({"w": "q.weight -> h m d"}, p)["w"]
    np.testing.assert_array_equal(found[1], values(p)["q.weight"][WIDTH : 2 * WIDTH].T)


def test_stacked_parts_have_a_separate_axis():
    p = attention()
    found = there({"w": "q.weight, k.weight, v.weight -> s h d m"}, p)["w"]
    np.testing.assert_array_equal(found[2], values(p)["v.weight"].reshape(HEADS, WIDTH, MODEL))


def test_columns_of_the_output_projection_can_have_width_before_head():
    p = attention()
    found = there({"w": "out.weight -> m (d h)"}, p)["w"]
    assert found[2, 1 * HEADS + 3] == values(p)["out.weight"][2, 3 * WIDTH + 1]


def test_one_array_a_head_counts_by_h():
    p = attention(KV_HEADS)
    found = there({"heads.{h}.wq": "q.weight -> m d", "kv.{h}.w": "k.weight, v.weight -> (s d) m"}, p)
    assert sorted(found) == [*(f"heads.{h}.wq" for h in range(HEADS)), *(f"kv.{h}.w" for h in range(KV_HEADS))]
    np.testing.assert_array_equal(found["heads.2.wq"], values(p)["q.weight"][2 * WIDTH : 3 * WIDTH].T)
    rows = slice(WIDTH, 2 * WIDTH)
    want = np.concatenate([values(p)["k.weight"][rows], values(p)["v.weight"][rows]])
    np.testing.assert_array_equal(found["kv.1.w"], want)


def test_one_array_a_head_keeps_the_canonical_axes_without_an_arrow():
    p = attention()
    found = there({"wo.{h}": "out.weight", "bq.{h}": "q.bias"}, p)
    np.testing.assert_array_equal(found["wo.3"], values(p)["out.weight"][:, 3 * WIDTH :])
    np.testing.assert_array_equal(found["bq.1"], values(p)["q.bias"][WIDTH : 2 * WIDTH])


def test_singleton_axes_are_added():
    p = {"positions.weight": Parameter("t m", {"t": 2, "m": 3})}
    found = there({"pe": "positions.weight / d_model ** 0.5 -> 1 t 1 m"}, p, {"d_model": 4})["pe"]
    np.testing.assert_array_equal(found, values(p)["positions.weight"][None, :, None] / 2)


def test_a_part_may_be_an_affine_function_of_itself():
    p = attention() | {"norm1.weight": Parameter("m", {"m": MODEL})}
    found = there({"ln": "norm1.weight - 1", "w": "q.weight / d_model, k.weight -> (s h d) m"}, p, {"d_model": 8})
    np.testing.assert_array_equal(found["ln"], values(p)["norm1.weight"] - 1)
    want = np.concatenate([values(p)["q.weight"] / 8, values(p)["k.weight"]])
    np.testing.assert_array_equal(found["w"], want)


def test_affine_functions_keep_the_dtype():
    p = {"norm1.weight": Parameter("m", {"m": 3})}
    found = there({"ln": "norm1.weight / 3 - 1"}, p, canonical=values(p, np.float32))["ln"]
    assert found.dtype == np.float32


# --- layers and subtrees --------------------------------------------------------------------------------------------


def model(layers=3):
    sizes = {
        "d_model": 6, "num_heads": 2, "kv_heads": 2, "head_width": 3, "d_ff": 5, "vocab_size": 7, "block_size": 4,
        "num_layers": layers,
    }  # fmt: skip
    return COMPONENTS["TinyTransformerLM"].parameters(sizes, FULL)


def test_a_layer_index_makes_one_array_a_layer():
    p = model()
    found = there({"h.{i}.ln.g": "blocks.{i}.norm1.weight"}, p)
    assert list(found) == ["h.0.ln.g", "h.1.ln.g", "h.2.ln.g"]
    np.testing.assert_array_equal(found["h.2.ln.g"], values(p)["blocks.2.norm1.weight"])


def test_ten_layers_are_counted_as_numbers():
    p = model(11)
    assert list(there({"{i}": "blocks.{i}.norm1.weight"}, p)) == [str(n) for n in range(11)]


def test_layers_can_be_stacked_on_an_axis_i():
    p = model()
    found = there({"w": "blocks.{i}.attention.q.weight -> i m (h d)"}, p)["w"]
    np.testing.assert_array_equal(found[1], values(p)["blocks.1.attention.q.weight"].T)


def test_layers_are_stacked_in_front_without_an_arrow():
    assert there({"w": "blocks.{i}.norm1.weight"}, model())["w"].shape == (3, 6)


def test_a_single_layer_can_be_named():
    p = model()
    np.testing.assert_array_equal(there({"a": "blocks.1.norm2.bias"}, p)["a"], values(p)["blocks.1.norm2.bias"])


def test_a_subtree_with_rules_makes_their_arrays_in_every_layer():
    nested = {
        "MultiHeadAttention": [parse_rule("c_attn", "q.weight, k.weight, v.weight -> m (s h d)")],
        "TransformerBlock": [parse_rule("attn.*", "attention.*"), parse_rule("ln", "norm1.weight - 1")],
    }
    found = to_implementation(expand([parse_rule("h.{i}.*", "blocks.{i}.*")], nested), values(model()), model(), {})
    assert found["h.1.attn.c_attn"].shape == (6, 18)
    assert len(found) == 2 * 3


def test_a_subtree_without_rules_renames_the_beginning():
    p = model()
    rules = expand([parse_rule("h.{i}.*", "blocks.{i}.*"), parse_rule("lm.*", "head.*")], {})
    found = to_implementation(rules, values(p), p, {})
    np.testing.assert_array_equal(found["h.2.attention.q.bias"], values(p)["blocks.2.attention.q.bias"])
    assert {"lm.weight", "lm.bias"} < set(found)
    assert set(to_canonical(rules, found, p, {})) == {n for n in p if n.startswith(("blocks.", "head."))}


def test_layers_can_be_counted_from_another_number_and_followed_by_others():
    p = model(3)
    found = there({"body.{i+2}.g": "blocks.{i}.norm1.weight", "body.{n+2}.weight": "norm.weight"}, p)
    assert set(found) == {"body.2.g", "body.3.g", "body.4.g", "body.5.weight"}
    np.testing.assert_array_equal(found["body.4.g"], values(p)["blocks.2.norm1.weight"])
    below = there({"h{i+1}.*": "blocks.{i}.norm2.*", "h{n}0.*": "norm.*"}, p)
    assert {"h1.weight", "h3.bias", "h30.weight"} < set(below)


def test_flat_lists_count_in_steps():
    p = model(3)
    lines = {
        "body.{2*i}.*": "blocks.{i}.attention.*", "body.{i*2 + 1}.g": "blocks.{i}.norm2.weight",
        "body.{2*n}.weight": "norm.weight", "up.{n-1-i}": "blocks.{i}.feed_forward.up.bias",
    }  # fmt: skip
    found, own = there(lines, p), values(p)
    np.testing.assert_array_equal(found["body.4.q.bias"], own["blocks.2.attention.q.bias"])
    np.testing.assert_array_equal(found["body.5.g"], own["blocks.2.norm2.weight"])
    np.testing.assert_array_equal(found["body.6.weight"], own["norm.weight"])
    np.testing.assert_array_equal(found["up.2"], own["blocks.0.feed_forward.up.bias"])
    assert not {name for name in found if "{" in name}


def test_a_list_is_not_counted_below_zero():
    with pytest.raises(PatternError, match="counts to -1, and entries of a list are counted from 0"):
        there({"body.{2*i-1}": "blocks.{i}.norm1.weight"}, model())


def test_one_array_a_row_and_one_a_hidden_unit():
    p = model(2)
    lines = {
        "words.{t}": "embedding.weight", "places.{t+1}": "positions.weight -> m",
        "layer.{i}.unit.{f}": "blocks.{i}.feed_forward.up.weight", "scores.{t}": "head.bias",
    }  # fmt: skip
    found, own = there(lines, p), values(p)
    assert {name for name in found if name.startswith(("words", "places"))} == {
        *(f"words.{row}" for row in range(7)), *(f"places.{row}" for row in range(1, 5))
    }  # fmt: skip
    np.testing.assert_array_equal(found["words.6"], own["embedding.weight"][6])
    np.testing.assert_array_equal(found["places.1"], own["positions.weight"][0])
    np.testing.assert_array_equal(found["layer.1.unit.4"], own["blocks.1.feed_forward.up.weight"][4])
    assert found["scores.3"].shape == ()
    rules = [parse_rule(target, source) for target, source in lines.items()]
    back = to_canonical(rules, found, p, {})
    assert len(back) == 5
    for name, array in back.items():
        np.testing.assert_array_equal(array, own[name])


def test_a_lone_star_stands_for_everything():
    p = attention()
    assert set(there({"inner.*": "*"}, p)) == {f"inner.{name}" for name in p}


# --- back again -----------------------------------------------------------------------------------------------------

ROUND_TRIPS = {
    "separate": {f"w{n}": f"{n}.weight" for n in ("q", "k", "v", "out")},
    "transposed": {"wq": "q.weight -> m (h d)", "wo": "out.weight -> (h d) m"},
    "three-dimensional": {"wq": "q.weight -> h m d", "wk": "k.weight -> d h m", "wo": "out.weight -> h d m"},
    "fused": {"w": "v.weight, q.weight, k.weight -> (s h d) m", "b": "q.bias, k.bias, v.bias -> (s h d)"},
    "fused-kernel": {"w": "q.weight, k.weight, v.weight -> m (s h d)"},
    "fused-width-first": {"w": "q.weight, k.weight -> (s d h) 1 m"},
    "key-value-interleaved": {"w": "k.weight, v.weight -> (h s d) m", "b": "k.bias, v.bias -> (d s h)"},
    "key-value-stacked": {"w": "k.weight, v.weight -> m s (h d)"},
    "grouped": {"w": "q.weight, k.weight, v.weight -> (h s d) m", "b": "v.bias, q.bias, k.bias -> h (s d)"},
    "one-a-head": {"q.{h}": "q.weight -> d m", "kv.{h}": "k.weight, v.weight -> d (s m)", "o.{h}": "out.weight"},
    "affine": {"w": "q.weight * 2, 3 - k.weight -> m (s h d)", "b": "q.bias / 4 - 1"},
}
SMALL = st.integers(1, 4)


@pytest.mark.parametrize("lines", ROUND_TRIPS.values(), ids=ROUND_TRIPS)
@given(kv_heads=SMALL, groups=SMALL, width=SMALL, wide=st.integers(1, 6))
def test_there_and_back_is_the_identity(lines, kv_heads, groups, width, wide):
    p = attention(kv_heads, kv_heads * groups, width, wide)
    rules, canonical = [parse_rule(*line) for line in lines.items()], values(p)
    theirs = to_implementation(rules, canonical, p, {})
    assert {name: array.shape for name, array in theirs.items()} == shapes(rules, p)
    back = to_canonical(rules, theirs, p, {})
    assert set(back) == set(re.findall(r"\w+\.(?:weight|bias)", " ".join(lines.values())))
    for name, array in back.items():
        assert array.shape == p[name].shape
        np.testing.assert_allclose(array, canonical[name], rtol=1e-15 if lines is ROUND_TRIPS["affine"] else 0)


@given(layers=st.integers(1, 12))
def test_a_whole_model_comes_back(layers):
    p = model(layers)
    lines = {"h.{i}.*": "blocks.{i}.*", "w.*": "embedding.*", "e.*": "embedding_norm.*", "p.*": "positions.*",
             "n.*": "norm.*", "head": "head.weight -> m v", "head_bias": "head.bias"}  # fmt: skip
    rules, canonical = [parse_rule(*line) for line in lines.items()], values(p)
    back = to_canonical(rules, to_implementation(rules, canonical, p, {}), p, {})
    assert back.keys() == p.keys()
    for name, array in back.items():
        np.testing.assert_array_equal(array, canonical[name])


def test_self_attention_concatenates_queries_and_values_of_different_width():
    p = COMPONENTS["SelfAttention"].parameters({"d_model": 5, "d_k": 2, "d_v": 3}, Variant())
    rules = [parse_rule("w", "q.weight, k.weight, v.weight -> (s d) m")]
    theirs = to_implementation(rules, values(p), p, {})
    assert theirs["w"].shape == (7, 5)
    np.testing.assert_array_equal(to_canonical(rules, theirs, p, {})["v.weight"], values(p)["v.weight"])


def test_tables_of_different_things_lie_one_under_the_other():
    """Would break if a table of words and positions, as in GPT-1, could not be declared."""
    p = {"embedding.weight": Parameter("v m", {"v": 3, "m": 2}), "positions.weight": Parameter("t m", {"t": 4, "m": 2})}
    rules = [parse_rule("rows", "embedding.weight, positions.weight -> (s v) m")]
    theirs = to_implementation(rules, values(p), p, {})
    np.testing.assert_array_equal(theirs["rows"], np.concatenate(list(values(p).values())))
    back = to_canonical(rules, theirs, p, {})
    assert all(np.array_equal(back[name], array) for name, array in values(p).items())


def test_the_first_rule_reads_a_part_that_two_hold():
    p = {"embedding.weight": Parameter("v m", {"v": 2, "m": 2})}
    rules = [parse_rule("wte", "embedding.weight"), parse_rule("head", "embedding.weight")]
    assert set(to_implementation(rules, values(p), p, {})) == {"wte", "head"}
    first = np.ones((2, 2))
    np.testing.assert_array_equal(to_canonical(rules, {"wte": first}, p, {})["embedding.weight"], first)
    np.testing.assert_array_equal(
        to_canonical(rules, {"wte": first, "head": 2 * first}, p, {})["embedding.weight"], first
    )


def test_the_first_rule_reads_a_part_that_a_fused_array_holds_too():
    p = attention()
    canonical = values(p)
    rules = [parse_rule("wq", "q.weight"), parse_rule("w", "q.weight, k.weight -> (s h d) m")]
    theirs = to_implementation(rules, canonical, p, {})
    back = to_canonical(rules, {**theirs, "w": theirs["w"] + 1}, p, {})
    np.testing.assert_array_equal(back["q.weight"], canonical["q.weight"])
    np.testing.assert_array_equal(back["k.weight"], canonical["k.weight"] + 1)


# --- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ({"a": "gate.weight"}, "this variant has no gate.weight"),
        ({"a.{i}": "blocks.{i}.norm1.weight"}, "this variant has no blocks.{i}.norm1.weight"),
        (
            {"a": "q.weight, k.weight -> s (h d) m"},
            "the parts differ: h d is 12 in q.weight, 6 in k.weight; put s first",
        ),
        ({"a.{h}": "q.weight, k.weight -> (s d) m"}, "the parts differ: h is 4 in q.weight, 2 in k.weight"),
        ({"a": "q.weight -> h d"}, "the axis m of q.weight ((h d) m) is missing"),
        ({"a.{h}": "out.bias"}, "out.bias has the axes m: no h to count heads by {h}"),
        ({"a": "q.bias / d_modl"}, "unknown name d_modl; nearest: d_model"),
        ({"a": "q.bias ** 2"}, "it is not affine in the weight"),
        ({"a": "q.bias", "a.*": "q.*", "a.weight": "q.weight"}, "a.weight is already set by another rule"),
    ],
)
def test_a_rule_that_does_not_fit_this_instance_names_itself(lines, problem):
    with pytest.raises(PatternError) as caught:
        there(lines, attention(KV_HEADS), {"d_model": MODEL})
    assert problem in str(caught.value)
    assert str(caught.value).startswith('"a')


def test_a_wrong_shape_is_shown_next_to_the_wanted_one():
    p = attention(KV_HEADS)
    rules = [parse_rule("c_attn", "q.weight, k.weight, v.weight -> m (s h d)")]
    with pytest.raises(PatternError, match=r"c_attn has the shape \(5, 36\), expected \(5, 24\)"):
        to_canonical(rules, {"c_attn": np.zeros((5, 36))}, p, {})
    with pytest.raises(PatternError, match=r"q.weight has the shape \(5, 12\), expected \(12, 5\)"):
        to_implementation(rules, {**values(p), "q.weight": np.zeros((5, 12))}, p, {})


def test_an_absent_parameter_is_named_with_the_nearest():
    with pytest.raises(PatternError, match="there is no parameter c_atn; nearest: c_attn"):
        to_canonical([parse_rule("c_atn", "q.weight")], {"c_attn": np.zeros((12, 5))}, attention(), {})
