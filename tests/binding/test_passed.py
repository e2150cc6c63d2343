"""What an argument passes: a size or a flag of the contract is no excuse, a number that is computed is one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.passed import kind_of, kinds_of, shown, without_kinds


def said(value: Any) -> Any:
    """Return texts as expressions, in lists and tables too."""
    if isinstance(value, list):
        return [said(inner) for inner in value]
    if isinstance(value, dict):
        return {key: said(inner) for key, inner in value.items()}
    return Expression(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("value", "name", "kind"),
    [
        ("d_model", "", ""), ("d_model * 4", "", ""), ("4 * d_model", "width", "factors"),
        ("4 * d_model", "d_ff", ""), ("d_model // num_heads", "", ""),
        ("d_model / num_heads", "", "factors"), ("1 / sqrt(head_width)", "", "factors"),
        ("0.5 * d_model", "", "factors"),
        ("d_model ** -1", "", "factors"), ("max_len + 1", "max_len", "factors"), ("max_len + 1", "", ""),
        ("max_len", "max_len", ""), ("T // T", "", "constants"), ("d_model > 0", "", "constants"),
        ("d_model > num_heads", "", "constants"), ("num_heads // d_model", "", ""), ("3", "", "constants"),
        ("None", "", ""), ("dtype", "", "constants"), ("T", "", ""),
        ("mask", "", ""), ("mask if mask is not None else 0", "", ""), ("0 if mask is None else mask", "", ""),
        ("0 if mask is None else q", "", "factors"), ("mask if q is not None else 0", "", "factors"),
        ("2 * q", "", "factors"), ("(q, k)", "", ""), ("(q, 2 * k)", "", "factors"), ("q[0]", "", ""),
        ("temperature > 0", "", ""), ("temperature > 1", "", "factors"),
        ("max_new_tokens", "", ""), ("max_new_tokens + 1", "", "computed"), ("T + max_new_tokens", "n", "computed"),
        ("max_new_tokens + 1", "max_new_tokens", "factors"),
        ("not causal", "see_all", "computed"), ("not causal", "causal", "factors"), ("not causal", "", "factors"),
        (["d_model", "2 * q"], "", "factors"), (["d_model"], "", ""),
        ({"a": "max_new_tokens + 1", "b": "q"}, "", "computed"),
        (True, "", "constants"), (0.1, "", "constants"),
    ],
)  # fmt: skip
def test_what_an_argument_passes_is_a_size_or_an_excuse(value: Any, name: str, kind: str) -> None:
    """Would break if a factor could be hidden in an expression, or if a size were an excuse of right code."""
    assert kind_of(said(value), name) == kind


def test_an_object_of_a_library_that_computes_may_be_a_factor_and_others_are_what_they_get() -> None:
    def made(path: str, **named: str) -> Any:
        return SimpleNamespace(path=path, arguments=Arguments((), {n: Expression(v) for n, v in named.items()}))

    assert kind_of(made("torch:nn.Identity")) == "factors"
    assert kind_of(made("mine:Config", n="d_model")) == "constants"
    assert kind_of(made("mine:Config", n="0.5 * d_model")) == "factors"
    assert shown(made("mine:Config", n="d_model")) == "an object of mine:Config"
    assert shown(made("mine:Config", n="0.5 * d_model")) == "an object of mine:Config with n = 0.5 * d_model"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2 * q", "2 * q"), (["q", True], "[q, True]"), ({"a": "q", "b": 1}, "{ a = q, b = 1 }"),
        ({"$name": "mine:f"}, "mine:f"), ({"$dtype": "dtype"}, "dtype"), (0.5, "0.5"), ({"$name": 3}, "3"),
    ],
)  # fmt: skip
def test_an_argument_is_shown_as_it_is_written(value: Any, text: str) -> None:
    assert shown(said(value)) == text


def test_excuses_that_are_refused_are_left_out_and_what_stands_behind_them() -> None:
    q, twice = Expression("q"), Expression("2 * q")
    given = Arguments((q, twice, q), {"mask": Expression("mask"), "n": 3, "scale": Expression("0.5 * d_model")})
    assert [kind for _, kind, _ in kinds_of(given)] == ["", "factors", "", "", "constants", "factors"]
    assert without_kinds(given, {"factors"}) == Arguments((q,), {"mask": Expression("mask"), "n": 3})
    assert without_kinds(given, {"constants"}) == Arguments(
        (q, twice, q), {k: v for k, v in given.named.items() if k != "n"}
    )
    assert without_kinds(given, set()) == given
    assert without_kinds(None, {"factors"}) is None
    assert shown(Arguments((q, twice), {"n": 3})) == "2 * q, n = 3"
