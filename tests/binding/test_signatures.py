"""Constructors and calls read from their signatures."""

from __future__ import annotations

from typing import Any

import pytest

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.signatures import (
    SignatureMismatch,
    call_from,
    construct_from,
    named_from,
    with_sizes,
)

CONTRACT = ("d_model", "num_heads", "dropout", "causal")
REQUIRED = {"d_model", "num_heads"}


def signature(*names: str) -> list[dict[str, Any]]:
    """`x` required, `x=` optional, `*x` and `**x` as usual; arguments after `*` are keyword-only."""
    kinds = {"**": "var_keyword", "*": "var_positional"}
    found = []
    plain = "positional"
    for name in names:
        star = "**" if name.startswith("**") else "*" if name.startswith("*") else ""
        if name == "*":
            plain = "keyword"
            continue
        found.append(
            {
                "name": name.strip("*="), "kind": kinds.get(star, plain),
                "required": not star and not name.endswith("="), "default": None, "positional_only": False,
            }
        )  # fmt: skip
    return found


def texts(arguments: Arguments) -> tuple[list[str], dict[str, str]]:
    return [a.text for a in arguments.positional], {n: a.text for n, a in arguments.named.items()}


def test_well_known_other_names_stand_for_the_contracts() -> None:
    found = construct_from(signature("embed_dim", "n_head", "drop="), CONTRACT, REQUIRED)
    assert texts(found) == ([], {"embed_dim": "d_model", "n_head": "num_heads", "drop": "dropout"})


def test_a_name_of_two_meanings_has_the_one_that_is_left() -> None:
    """Catches `p` beside `patch_size` that is left at its default: training is random with a rate of 0."""
    found = construct_from(signature("p=", "patch_size"), ["patch_size", "dropout"], {"patch_size"})
    assert texts(found)[1] == {"p": "dropout", "patch_size": "patch_size"}


def test_the_contracts_own_name_wins_over_an_alias() -> None:
    with pytest.raises(SignatureMismatch) as caught:
        construct_from(signature("dim", "d_model", "num_heads"), CONTRACT, REQUIRED)
    assert caught.value.unknown == ("dim",)


def test_an_argument_without_a_value_is_named() -> None:
    with pytest.raises(
        SignatureMismatch, match="requires config, which the contract does not have and does not take d_model"
    ) as caught:
        construct_from(signature("config"), CONTRACT, {"d_model"})
    assert caught.value.unknown == ("config",)
    assert caught.value.missing == ("d_model",)


def test_keyword_arguments_of_any_name_take_what_is_required() -> None:
    assert texts(construct_from(signature("**kwargs"), CONTRACT, REQUIRED))[1] == {
        "d_model": "d_model",
        "num_heads": "num_heads",
    }


def test_inputs_go_by_position_whatever_they_are_called() -> None:
    found = call_from(signature("tokens_in", "attn_mask="), ("x", "mask"), {"x"})
    assert texts(found) == (["x"], {"attn_mask": "mask"})


def test_query_key_and_value_all_receive_the_one_input() -> None:
    found = call_from(signature("query", "key", "value", "mask="), ("x", "mask"), {"x"})
    assert texts(found) == (["x", "x", "x"], {"mask": "mask"})


@pytest.mark.parametrize("names", [("*", "ids"), ("*", "attention_mask=", "input_ids=", "tokens="), ("*", "batch")])
def test_an_input_that_has_to_be_named_goes_by_its_name_or_to_the_only_place(names: tuple[str, ...]) -> None:
    positional, named = texts(call_from(signature(*names), ("ids",), {"ids"}))
    assert (positional, list(named.values())) == ([], ["ids"])
    assert named.keys() <= {"ids", "input_ids", "batch"}


def test_an_input_that_could_go_to_two_named_places_is_refused() -> None:
    with pytest.raises(SignatureMismatch, match="does not take ids"):
        call_from(signature("*", "batch", "state"), ("ids",), {"ids"})


def test_a_required_argument_of_a_call_without_a_value_is_named() -> None:
    with pytest.raises(SignatureMismatch) as caught:
        call_from(signature("x", "freqs"), ("x", "mask"), {"x"})
    assert caught.value.unknown == ("freqs",)


LOSS = ("logits", "targets")


def test_a_name_that_is_known_goes_where_it_belongs_and_the_others_fill_the_gaps() -> None:
    assert texts(named_from(signature("labels", "y_hat"), LOSS, set(LOSS))) == (
        [],
        {"labels": "targets", "y_hat": "logits"},
    )


def test_as_many_unknown_names_must_be_left_as_gaps() -> None:
    with pytest.raises(SignatureMismatch, match="requires a, b"):
        named_from(signature("labels", "a", "b"), LOSS, set(LOSS))


def test_a_size_that_the_constructor_takes_is_passed_though_the_file_leaves_it_out():
    taken = signature("d_model=", "d_k=", "*", "d_v=", "**rest")
    contract = ["d_model", "d_k", "d_v", "causal", "d_ff"]
    found = with_sizes(Arguments((Expression("d_model"),), {"d_v": 3}), taken, contract)
    assert found == Arguments((Expression("d_model"),), {"d_v": 3, "d_k": Expression("d_k")})
    placed = Arguments((Expression("d_model"), 8), {"x": Expression("d_v")})  # 8 is where d_k stands
    assert with_sizes(placed, taken, contract) == placed
