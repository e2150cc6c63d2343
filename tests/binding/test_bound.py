"""Requests for one component: constructor, call and generation, in the implementation's conventions."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.bound import Bound, set_only
from conformkit.conformance.binding.config import MaskConfig, parse_config
from conformkit.conformance.binding.generation import Generation
from conformkit.conformance.binding.rules import parse_rule
from conformkit.spec.components import COMPONENTS
from conformkit.spec.masks import causal_mask

SIZES = {"d_model": 6, "num_heads": 2, "kv_heads": 2, "head_width": 3, "dropout": 0.0, "causal": True}
X = np.arange(30.0).reshape(1, 5, 6)
IDS = np.arange(6).reshape(2, 3)
MASK = causal_mask(5)


def arguments(*positional, **named):
    return Arguments(tuple(map(Expression, positional)), {name: Expression(text) for name, text in named.items()})


def bound(text="", name="MultiHeadAttention", **changes):
    """Return a component whose table in conform.toml is `text`; anything else is the contract's."""
    config = parse_config(f"[components.{name}]\n{text}")
    own = config.component(name)
    component = COMPONENTS[name]
    facts = {
        "component": component, "path": "mypkg:It", "config": own,
        "variant": config.variant_for(name), "limits": config.limits_for(name),
        "construct": own.construct or arguments(**{a.name: a.name for a in component.arguments}),
        "call": own.call or arguments(*(i for i in component.inputs if i != "mask"), mask="mask"),
        "causal": own.causal or "construct", "mask": own.mask or MaskConfig(), "generation": None,
        "weights_output": own.weights_output,
    }  # fmt: skip
    return Bound(**{**facts, **changes})


def generating(text="", *, call=None, greedy=None, method="generate", function=None, new_only=False, **more):
    call = call or arguments("ids", "max_new_tokens", temperature="temperature", top_k="top_k", top_p="top_p")
    generation = Generation(method, function, call, greedy or Arguments((), {"temperature": 0.0}), new_only, **more)
    return bound(text, "TinyTransformerLM", generation=generation)


# --- construction -----------------------------------------------------------------------------------------------------


def test_a_request_to_build_carries_sizes_under_their_names():
    it = bound("construct = ['d_model', { heads = 'num_heads', act = \"'gelu'\" }]")
    header, arrays = it.build_request(SIZES, dtype="float32", seed=3)
    assert header == {
        "op": "build", "component": "MultiHeadAttention", "path": "mypkg:It", "args": [6],
        "kwargs": {"heads": 2, "act": "gelu"}, "dtype": "float32", "seed": 3, "factory": False,
    }  # fmt: skip
    assert arrays == {}


def test_a_factory_is_distinguished_from_a_component():
    header, _ = bound("factory = true").build_request(SIZES, dtype="float64", seed=0)
    assert header["factory"] is True


def test_unrequested_widths_are_left_to_the_constructor():
    # d_k = None passed to a constructor that does not accept None is a crash that is not its fault
    it = bound(name="SelfAttention")
    args, kwargs = (
        it.build_request({"d_model": 6, "causal": True}, dtype="float64", seed=0)[0][k] for k in ("args", "kwargs")
    )
    assert (args, kwargs) == ([], {"d_model": 6, "causal": True})


def test_false_and_zero_are_values():
    header, _ = bound().build_request({**SIZES, "causal": False}, dtype="float64", seed=0)
    assert (header["kwargs"]["causal"], header["kwargs"]["dropout"]) == (False, 0.0)


# --- calls ------------------------------------------------------------------------------------------------------------


def test_inputs_go_where_the_call_names_them_and_no_others_are_sent():
    it = bound("call = ['x', 'x', 'x', { attn_mask = 'mask', need_weights = false }]")
    header, arrays = it.call_request({"x": X, "mask": MASK, "positions": np.arange(5)}, {"causal": True})
    x = {"$tensor": "x"}
    assert header["args"] == [x, x, x]
    assert header["kwargs"] == {"attn_mask": {"$tensor": "mask"}, "need_weights": False}
    assert set(arrays) == {"x", "mask"}


def test_an_option_without_a_value_is_left_out_by_name():
    # mask = None given to a constructor that has no such argument is a TypeError
    header, arrays = bound("call = ['x', { attn_mask = 'mask' }]").call_request({"x": X}, {})
    assert (header["args"], header["kwargs"], set(arrays)) == ([{"$tensor": "x"}], {}, {"x"})


def test_an_option_without_a_value_is_left_out_at_the_end_and_none_in_the_middle():
    it = bound("call = ['x', 'mask', 'causal', 'positions']")
    assert it.call_request({"x": X}, {"causal": False})[0]["args"] == [{"$tensor": "x"}, None, False]
    assert it.call_request({"x": X}, {})[0]["args"] == [{"$tensor": "x"}, None]


def test_an_expression_that_mentions_an_absent_mask_has_its_value_all_the_same():
    header, _ = bound("call = ['x', { is_causal = 'mask is None' }]").call_request({"x": X}, {"causal": True})
    assert header["kwargs"] == {"is_causal": True}


def test_sizes_can_be_passed_to_a_call():
    # regression: conform.toml allows sizes here, but they had no value
    header, _ = bound("call = ['x', { n_head = 'num_heads' }]").call_request({"x": X}, SIZES)
    assert header["kwargs"] == {"n_head": 2}


def test_inputs_can_be_requested_in_other_formats_and_with_gaps():
    it = bound("call = ['x', 'positions']")
    inputs = {"x": X, "positions": np.arange(5)}
    half = it.call_request(inputs, {}, cast="float16", strided=True)[0]["args"]
    assert half == [{"$tensor": "x", "strided": True, "cast": "float16"}, {"$tensor": "positions", "strided": True}]
    short = it.call_request(inputs, {}, cast="int32")[0]["args"]
    assert short == [{"$tensor": "x"}, {"$tensor": "positions", "cast": "int32"}]


@pytest.mark.parametrize(
    ("text", "weights", "selector"),
    [
        ("", None, ""),
        ("output = 1", None, 1),
        ("output = ['logits', 0]", None, ["logits", 0]),
        ("", 1, [0, 1]),
        ("output = 'out'", "attn", ["out", "attn"]),
        ("output = 0", 1, [0, 1]),
        ("output = ['y', 'cache']", "attn", ["y", "attn"]),
    ],
    ids=["plain", "index", "several", "weights", "keys", "pair", "several-and-weights"],
)
def test_the_selector_takes_the_output_and_then_the_weights(text, weights, selector):
    # with several outputs and weights, the selected output was lost, and index 0 was taken
    header, _ = bound(text, weights_output=weights).call_request({"x": X}, {})
    assert header["output"] == selector
    json.dumps(header)


# --- masks ------------------------------------------------------------------------------------------------------------


def sent_mask(text, mask=MASK, name="MultiHeadAttention"):
    it = bound(f"mask = {text}\ncausal = 'mask'", name)
    return it.call_request({"x": X, "mask": mask}, {})[1]["mask"]


def test_a_mask_is_sent_as_it_is_where_nothing_is_declared():
    np.testing.assert_array_equal(sent_mask("{}"), MASK)


def test_where_true_hides_the_mask_is_turned_round():
    np.testing.assert_array_equal(sent_mask("{ true = 'hide' }"), ~MASK)


def test_where_masks_are_numbers_what_may_be_attended_to_is_zero():
    sent = sent_mask("{ kinds = ['float'] }")
    assert sent.dtype == np.float64
    np.testing.assert_array_equal(sent == 0.0, MASK)
    np.testing.assert_array_equal(np.isneginf(sent), ~MASK)


def test_a_mask_of_numbers_has_one_polarity():
    # 'hide' is about True: added numbers always hide where they are -inf
    added = np.where(MASK, 0.0, -np.inf)
    np.testing.assert_array_equal(sent_mask("{ true = 'hide' }", added), added)
    np.testing.assert_array_equal(sent_mask("{ kinds = ['float'], true = 'hide' }"), added)


@pytest.mark.parametrize(
    ("form", "shape"), [("T T", (5, 5)), ("1 T T", (1, 5, 5)), ("1 1 T T", (1, 1, 5, 5)), ("T T 1", (5, 5, 1))]
)
def test_a_mask_has_the_declared_shape(form, shape):
    sent = sent_mask(f"{{ shape = '{form}' }}")
    assert sent.shape == shape
    np.testing.assert_array_equal(sent.reshape(5, 5), MASK)


@pytest.mark.parametrize(
    ("form", "shape"), [("B T T", (2, 5, 5)), ("B 1 T T", (2, 1, 5, 5)), ("B H T T", (2, 3, 5, 5))]
)
def test_a_mask_for_each_sequence_is_repeated(form, shape):
    """Would break if code that takes (B, T, T), and checks that, got a mask that only broadcasts to it."""
    _, arrays = bound(f"mask = {{ shape = '{form}' }}").call_request(
        {"x": np.zeros((2, 5, 6)), "mask": MASK}, {"num_heads": 3}
    )
    assert arrays["mask"].shape == shape
    np.testing.assert_array_equal(arrays["mask"], np.broadcast_to(MASK, shape))


def test_attention_itself_gets_its_masks_in_the_declared_shape_too():
    q = np.zeros((2, 5, 4))
    it = bound("mask = { shape = '1 T T' }", "ScaledDotProductAttention")
    _, arrays = it.call_request({"q": q, "k": q, "v": q, "mask": MASK}, {})
    assert arrays["mask"].shape == (1, 5, 5)


def test_a_mask_that_has_a_batch_keeps_its_shape():
    batch = np.broadcast_to(MASK, (2, 5, 5)).copy()
    assert sent_mask("{ shape = '1 1 T T' }", batch).shape == (2, 5, 5)


# --- layouts ----------------------------------------------------------------------------------------------------------


def test_sequence_first_swaps_inputs_and_outputs_and_leaves_masks_alone():
    it = bound("layout = 'sequence first'")
    x = np.arange(60.0).reshape(2, 5, 6)
    _, arrays = it.call_request({"x": x, "mask": MASK}, {})
    np.testing.assert_array_equal(arrays["x"], x.swapaxes(0, 1))
    np.testing.assert_array_equal(arrays["mask"], MASK)
    np.testing.assert_array_equal(it.from_theirs(arrays["x"]), x)
    np.testing.assert_array_equal(it.to_theirs(x), arrays["x"])
    assert arrays["x"].flags.c_contiguous


def test_sequence_first_holds_for_the_inputs_of_attention_as_for_its_output():
    # regression: q, k and v were passed batch first, and the output was read sequence first
    q, k, v = (np.zeros((2, 5, 4)), np.zeros((2, 7, 4)), np.zeros((2, 7, 6)))
    it = bound("layout = 'sequence first'", "ScaledDotProductAttention")
    _, arrays = it.call_request({"q": q, "k": k, "v": v}, {})
    assert [arrays[n].shape for n in "qkv"] == [(5, 2, 4), (7, 2, 4), (7, 2, 6)]
    assert it.from_theirs(np.zeros((5, 2, 6))).shape == (2, 5, 6)


def test_batch_first_changes_nothing():
    it = bound("layout = 'batch first'")
    assert it.from_theirs(X) is X
    assert it.to_theirs(X) is X


def test_a_single_sequence_has_no_axes_to_swap():
    assert bound("layout = 'sequence first'").to_theirs(np.arange(3.0)).shape == (3,)


def test_attention_that_wants_four_dimensions_gets_them():
    assert bound().leading(3) == (3,)
    assert bound("limits = { rank = 3 }").leading(3) == (3,)
    assert bound("limits = { rank = 4 }").leading(3) == (3, 2)


# --- generation -------------------------------------------------------------------------------------------------------


def test_a_request_to_generate_passes_only_the_options_that_were_given():
    header, arrays = generating().generate_request(IDS, 4, {"temperature": 0.7})
    assert header["args"] == [{"$tensor": "ids"}, 4]
    assert header["kwargs"] == {"temperature": 0.7}
    assert (header["op"], header["method"], header["function"]) == ("call", "generate", None)
    np.testing.assert_array_equal(arrays["ids"], IDS)


def test_greedy_is_requested_in_the_implementations_own_way():
    call = arguments("ids", "max_new_tokens", temp="temperature", k="top_k")
    it = generating(call=call, greedy=Arguments((), {"k": 1, "do_sample": False}))
    assert it.generate_request(IDS, 4, {"greedy": True})[0]["kwargs"] == {"k": 1, "do_sample": False}
    assert it.generate_request(IDS, 4, {"greedy": False, "temperature": 0.5})[0]["kwargs"] == {"temp": 0.5}


def test_a_positional_option_before_one_that_was_given_has_its_default():
    call = arguments("ids", "max_new_tokens", "temperature", "top_k", "top_p")
    header, _ = generating(call=call).generate_request(IDS, 4, {"top_k": 3})
    assert header["args"] == [{"$tensor": "ids"}, 4, 1.0, 3]


def test_the_seed_and_the_sizes_reach_a_call_that_mentions_them():
    # an own generator that always starts at 0 gives the same text for all seeds
    call = arguments("ids", "max_new_tokens", seed="seed", window="block_size")
    it = generating(call=call)
    assert it.generate_request(IDS, 4, {"seed": 5, "block_size": 9})[0]["kwargs"] == {"seed": 5, "window": 9}
    assert it.generate_request(IDS, 4, {"block_size": 9})[0]["kwargs"] == {"window": 9}


def test_a_function_that_generates_gets_the_model():
    it = generating(call=arguments("model", "ids", "max_new_tokens"), method=None, function="mypkg:generate")
    header, _ = it.generate_request(IDS, 2, {})
    assert header["args"] == [{"$self": True}, {"$tensor": "ids"}, 2]
    assert (header["method"], header["function"]) == (None, "mypkg:generate")


@pytest.mark.parametrize(("prompts", "given"), [("rows", {"$tensor": "ids"}), ("lists", {"$list": "ids"})])
def test_what_takes_one_prompt_is_called_for_each(prompts, given):
    """Would break if a batch were passed to a function that takes a list of ids: an error, and red for right code."""
    header, _ = generating(prompts=prompts).generate_request(IDS, 2, {})
    assert header["args"] == [given, 2]
    assert (header["each"], header["empty"]) == (["ids"], False)
    assert generating(prompts=prompts).generate_request(IDS[:0], 2, {})[0]["empty"] is True


def test_new_tokens_alone_are_put_after_the_prompt():
    new = np.array([[7, 8], [9, 7]])
    both = generating(new_only=True).generated(new, IDS.astype(np.int32))
    np.testing.assert_array_equal(both, [[0, 1, 2, 7, 8], [3, 4, 5, 9, 7]])
    assert both.dtype == np.int32
    assert generating().generated(both, IDS) is both
    np.testing.assert_array_equal(generating(new_only=True).generated(new[0], IDS[0]), [0, 1, 2, 7, 8])


def test_prompts_and_texts_are_swapped_where_the_sequence_is_first():
    it = generating("layout = 'sequence first'", new_only=True)
    _, arrays = it.generate_request(IDS, 1, {})
    np.testing.assert_array_equal(arrays["ids"], IDS.T)
    np.testing.assert_array_equal(it.generated(np.array([[7, 9]]), IDS), [[0, 1, 2, 7], [3, 4, 5, 9]])


def test_a_text_of_other_rank_than_the_prompt_is_shown_as_it_is():
    # the clause about its shape must see it
    assert generating(new_only=True).generated(np.array([7, 8]), IDS).shape == (2,)


# --- weights ----------------------------------------------------------------------------------------------------------


def test_weights_go_through_the_rules_and_come_back():
    it = bound(
        rules=(parse_rule("qkv", "q.weight, k.weight, v.weight -> (s h d) m"), parse_rule("o", "out.weight -> (h d) m"))
    )
    weights = {
        name: np.random.default_rng(0).normal(size=(6, 6))
        for name in ("q.weight", "k.weight", "v.weight", "out.weight")
    }
    theirs = it.to_implementation(weights, SIZES)
    assert {name: array.shape for name, array in theirs.items()} == {"qkv": (18, 6), "o": (6, 6)}
    for name, array in it.to_canonical(theirs, SIZES).items():
        np.testing.assert_array_equal(array, weights[name])


def test_weights_that_could_not_be_bound_fail_with_both_sides():
    it = bound(rules=None, unbound=("yours, not matched: extra [5, 5]", "the definition's: out.weight [6, 6]"))
    for action in (it.to_implementation, it.to_canonical):
        with pytest.raises(ClauseFailure, match="the parameters of MultiHeadAttention are not those") as caught:
            action({}, SIZES)
        assert caught.value.details == it.unbound


def test_declared_constants_are_ignored():
    it = bound("ignore = ['mask', '*.inv_freq']")
    assert [it.ignored(name) for name in ("mask", "rope.inv_freq", "wq")] == [True, True, False]


def test_nothing_changes_how_a_component_is_bound():
    with pytest.raises(FrozenInstanceError):
        bound().dtype = "float32"


# --- what is left out -------------------------------------------------------------------------------------------------


def test_only_plain_names_without_a_value_are_left_out():
    given = Arguments(
        (Expression("a"), 3, Expression("b")), {"c": Expression("c"), "d": Expression("not a"), "e": None}
    )
    kept = set_only(given, {"a": 1})
    assert kept == Arguments((Expression("a"), 3), {"d": Expression("not a"), "e": None})


def test_constants_that_look_like_names_stay():
    given = Arguments((Expression("None"),), {"flag": Expression("False")})
    assert set_only(given, {}) == given
