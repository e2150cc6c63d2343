"""Sizes near the wanted ones, within declared limits."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.config import Limits, Range
from conformkit.conformance.binding.sizes import NoSizeError, complete, nearest_allowed
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import CANONICAL

MHA = COMPONENTS["MultiHeadAttention"]


def test_without_limits_the_wanted_sizes_are_kept() -> None:
    sizes = complete({"d_model": 15, "num_heads": 5}, MHA, CANONICAL, Limits())
    assert sizes == {
        "d_model": 15, "num_heads": 5, "dropout": 0.0, "causal": True, "kv_heads": 5, "head_width": 3,
    }  # fmt: skip


def test_the_width_grows_until_the_heads_divide_it_and_the_limit_is_kept() -> None:
    sizes = complete({"d_model": 12, "num_heads": 3}, MHA, CANONICAL, Limits({"d_model": Range(multiple_of=8)}))
    assert (sizes["d_model"], sizes["num_heads"]) == (24, 3)


def test_grouped_heads_move_the_number_of_heads() -> None:
    sizes = complete({"d_model": 12, "num_heads": 3}, MHA, CANONICAL.but(kv_heads="num_heads // 2"), Limits())
    assert sizes["num_heads"] == 4
    assert sizes["kv_heads"] == 2


def test_rotary_heads_have_an_even_width() -> None:
    sizes = complete({"d_model": 15, "num_heads": 5}, MHA, CANONICAL.but(positions="rotary"), Limits())
    assert sizes["head_width"] % 2 == 0


def test_a_size_that_follows_from_another_is_worked_out() -> None:
    sizes = complete(
        {"d_model": 6, "d_ff": 7}, COMPONENTS["FeedForward"], CANONICAL, Limits({"d_ff": Range(equals="4 * d_model")})
    )
    assert sizes["d_ff"] == 24


def test_a_limit_below_the_wanted_size_gives_the_largest_allowed() -> None:
    assert nearest_allowed("tokens", 9, Limits({"tokens": Range(max=4)})) == 4


def test_impossible_limits_are_refused_by_name() -> None:
    with pytest.raises(NoSizeError, match="MultiHeadAttention"):
        complete({}, MHA, CANONICAL, Limits({"d_model": Range(7, 7), "num_heads": Range(2, 3)}))


def test_self_attentions_widths_default_to_the_models() -> None:
    sizes = complete({"d_model": 6, "d_v": 5}, COMPONENTS["SelfAttention"], CANONICAL, Limits())
    assert (sizes["d_k"], sizes["d_v"]) == (6, 5)
