"""Sizes near the wanted ones, within declared limits."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.binding.sizes import STANDARD, LimitWithoutValue, NoSizeError, complete, nearest_allowed
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import CANONICAL

MHA = COMPONENTS["MultiHeadAttention"]
SELF = COMPONENTS["SelfAttention"]
FEED_FORWARD = COMPONENTS["FeedForward"]
MODEL = COMPONENTS["TinyTransformerLM"]


def heads(wanted=None, limits=None, **variant):
    return complete(wanted or {}, MHA, CANONICAL.but(**variant), SizeLimits(limits or {}))


# --- what is completed ------------------------------------------------------------------------------------------------


def test_without_limits_the_wanted_sizes_are_kept():
    assert heads({"d_model": 15, "num_heads": 5}) == {
        "d_model": 15, "num_heads": 5, "dropout": 0.0, "causal": True, "kv_heads": 5, "head_width": 3,
    }  # fmt: skip


def test_what_a_clause_does_not_care_about_is_standard_and_all_different():
    # equal sizes would hide a transpose
    sizes = complete({}, MODEL, CANONICAL, SizeLimits())
    own = [argument.name for argument in MODEL.arguments if argument.name in STANDARD]
    assert {name: sizes[name] for name in own} == {name: STANDARD[name] for name in own}
    numbers = [STANDARD[name] for name in ("d_model", "num_heads", "d_ff", "vocab_size", "num_layers", "block_size")]
    assert len(set(numbers)) == len(numbers)


def test_a_requested_false_is_not_a_missing_value():
    sizes = heads({"causal": False, "dropout": 0.5})
    assert (sizes["causal"], sizes["dropout"]) == (False, 0.5)


def test_a_component_without_heads_has_neither_their_number_nor_their_width():
    assert complete({}, FEED_FORWARD, CANONICAL, SizeLimits()) == {"d_model": 12, "d_ff": 20, "dropout": 0.0}


def test_a_component_without_sizes_gets_none():
    assert complete({}, COMPONENTS["ScaledDotProductAttention"], CANONICAL, SizeLimits({"d_model": Range(8, 8)})) == {}


def test_self_attentions_widths_default_to_the_models():
    sizes = complete({"d_model": 6, "d_v": 5}, SELF, CANONICAL, SizeLimits())
    assert (sizes["d_k"], sizes["d_v"]) == (6, 5)


def test_self_attentions_default_widths_keep_to_their_limits():
    # a width derived from d_model could be one that the implementation's limits exclude
    sizes = complete({"d_model": 12}, SELF, CANONICAL, SizeLimits({"d_k": Range(max=8), "d_v": Range(multiple_of=5)}))
    assert (sizes["d_k"], sizes["d_v"]) == (8, 15)


# --- heads ------------------------------------------------------------------------------------------------------------


def test_the_width_grows_until_the_heads_divide_it_and_the_limit_is_kept():
    sizes = heads({"d_model": 12, "num_heads": 3}, {"d_model": Range(multiple_of=8)})
    assert (sizes["d_model"], sizes["num_heads"]) == (24, 3)


def test_the_number_of_heads_changes_when_no_width_fits():
    sizes = heads({"d_model": 12, "num_heads": 5}, {"d_model": Range(12, 12)})
    assert (sizes["d_model"], sizes["num_heads"]) == (12, 6)


def test_grouped_heads_move_the_number_of_heads():
    sizes = heads({"d_model": 12, "num_heads": 3}, kv_heads="num_heads // 2")
    assert (sizes["num_heads"], sizes["kv_heads"]) == (4, 2)


def test_key_value_heads_divide_the_heads():
    # 3 heads for 2 key/value heads cannot be grouped
    assert heads({"num_heads": 3}, kv_heads="2")["num_heads"] == 4


def test_more_key_value_heads_than_heads_are_not_drawn():
    assert heads({"num_heads": 2}, kv_heads="4")["num_heads"] == 4


def test_rotary_heads_have_an_even_width():
    sizes = heads({"d_model": 15, "num_heads": 5}, positions="rotary")
    assert sizes["head_width"] % 2 == 0
    assert sizes["d_model"] == 20


def test_a_separate_head_width_does_not_change_the_models_width():
    sizes = heads({"d_model": 7, "num_heads": 3}, head_width="8")
    assert (sizes["d_model"], sizes["head_width"]) == (7, 8)


def test_limits_of_the_worked_out_sizes_hold_too():
    # regression: a kernel for heads of width 8 was called with width 4
    assert heads({"d_model": 12, "num_heads": 3}, {"head_width": Range(8, 8)})["d_model"] == 24
    assert heads({"num_heads": 3}, {"kv_heads": Range(max=2)})["kv_heads"] == 2


def test_an_expression_that_divides_by_zero_has_no_value():
    # it ruled the sizes out, and a clause that finds none does not apply
    with pytest.raises(LimitWithoutValue):
        heads(head_width="d_model // (num_heads - num_heads)")


# --- limits -----------------------------------------------------------------------------------------------------------


def test_a_size_that_follows_from_another_is_worked_out():
    sizes = complete(
        {"d_model": 6, "d_ff": 7}, FEED_FORWARD, CANONICAL, SizeLimits({"d_ff": Range(equals="4 * d_model")})
    )
    assert sizes["d_ff"] == 24


def test_a_size_follows_from_the_width_that_was_chosen_not_from_the_one_wanted():
    limits = SizeLimits({"d_ff": Range(equals="4 * d_model"), "d_model": Range(multiple_of=10)})
    assert complete({"d_model": 6}, FEED_FORWARD, CANONICAL, limits)["d_ff"] == 40


def test_the_width_may_follow_from_the_heads():
    assert heads({"d_model": 6, "num_heads": 3}, {"d_model": Range(equals="num_heads * 5")})["d_model"] == 15


def test_an_expression_over_sizes_that_the_component_lacks_is_named():
    # regression: general limits apply to every component; this was a traceback
    limits = SizeLimits({"d_ff": Range(equals="4 * num_heads")})
    with pytest.raises(
        LimitWithoutValue, match=r'the limits give d_ff no value: expression "4 \* num_heads": unknown name'
    ):
        complete({}, FEED_FORWARD, CANONICAL, limits)


@pytest.mark.parametrize("text", ["'wide'", "None", "(1, 2)"], ids=["text", "none", "list"])
def test_an_expression_that_is_not_a_number_allows_no_size(text):
    with pytest.raises(LimitWithoutValue):
        complete({}, FEED_FORWARD, CANONICAL, SizeLimits({"d_ff": Range(equals=text)}))
    with pytest.raises(NoSizeError):
        heads(kv_heads=text)


def test_impossible_limits_are_refused_by_name():
    limits = {"d_model": Range(7, 7), "num_heads": Range(2, 3)}
    with pytest.raises(NoSizeError, match=r"no sizes near \{'d_model': 8\} .* limits of MultiHeadAttention"):
        heads({"d_model": 8}, limits)


def test_a_range_without_a_multiple_is_refused_with_its_numbers():
    with pytest.raises(NoSizeError, match="limits of tokens allow no value: min 5, max 7, multiple of 4"):
        nearest_allowed("tokens", 5, SizeLimits({"tokens": Range(5, 7, 4)}))


@pytest.mark.parametrize(
    ("wanted", "limit", "found"),
    [
        pytest.param(9, Range(), 9, id="free"),
        pytest.param(9, Range(max=4), 4, id="above"),
        pytest.param(3, Range(min=6), 6, id="below"),
        pytest.param(9, Range(multiple_of=4), 12, id="upwards-first"),
        pytest.param(11, Range(max=11, multiple_of=4), 8, id="downwards-then"),
        pytest.param(12, Range(multiple_of=128), 128, id="a-large-step"),
        pytest.param(12, Range(multiple_of=1_000_000), 1_000_000, id="the-largest-step"),
        pytest.param(5, Range(5, 5), 5, id="fixed"),
        pytest.param(0, Range(), 1, id="none"),
        pytest.param(7, Range(equals="2 * d_model"), 7, id="follows"),
    ],
)
def test_the_nearest_allowed_size_is_the_next_larger_one_if_there_is_any(wanted, limit, found):
    assert nearest_allowed("d_ff", wanted, SizeLimits({"d_ff": limit})) == found


@pytest.mark.parametrize("size", ["tokens", "batch"])
def test_an_extent_whose_square_is_too_large_is_refused(size):
    # without this, the harness would draw it and run out of memory
    with pytest.raises(NoSizeError, match=f"the limits make {size} 100000, more than the"):
        nearest_allowed(size, 5, SizeLimits({size: Range(min=100_000)}))


@pytest.mark.parametrize(
    "limits",
    [{"d_model": Range(min=100_000)}, {"d_ff": Range(equals="d_model ** 9")}, {"num_layers": Range(min=1_000_000)}],
    ids=["wide", "inside", "deep"],
)
def test_a_component_with_more_numbers_than_the_harness_can_hold_is_refused(limits):
    with pytest.raises(NoSizeError, match="more than"):
        complete({}, COMPONENTS["TinyTransformerLM"], CANONICAL, SizeLimits(limits))


BOUNDS = st.one_of(st.none(), st.integers(1, 40))


@given(st.integers(1, 50), BOUNDS, BOUNDS, st.integers(1, 9))
def test_a_drawn_size_is_allowed_and_none_lies_between(wanted, low, high, step):
    limit = Range(low, high, step)
    allowed = [n for n in range(1, 200) if limit.allows(n)]
    limits = SizeLimits({"tokens": limit})
    if not allowed:
        with pytest.raises(NoSizeError):
            nearest_allowed("tokens", wanted, limits)
        return
    larger = [n for n in allowed if n >= wanted]
    assert nearest_allowed("tokens", wanted, limits) == (larger[0] if larger else allowed[-1])


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 6), st.sampled_from(["num_heads", "1", "num_heads // 2"]))
def test_heads_always_fit(width, count, step, kv_heads):
    sizes = heads({"d_model": width, "num_heads": count}, {"d_model": Range(multiple_of=step)}, kv_heads=kv_heads)
    assert sizes["num_heads"] * sizes["head_width"] == sizes["d_model"]
    assert sizes["num_heads"] % sizes["kv_heads"] == 0
    assert sizes["d_model"] % step == 0


def test_every_component_has_sizes_under_every_single_limit():
    for component, name in itertools.product(COMPONENTS.values(), ("d_model", "num_heads", "d_ff", "block_size")):
        sizes = complete({}, component, CANONICAL, SizeLimits({name: Range(min=16, multiple_of=16)}))
        assert sizes.get(name, 16) % 16 == 0
