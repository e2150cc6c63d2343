"""The expression language: what it computes, what it refuses, and that hostile expressions stay cheap."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import ExpressionError

SIZES = {"d_model": 12, "num_heads": 3, "dropout": 0.5, "causal": True, "mask": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("4 * d_model", 48),
        ("d_model // num_heads", 4),
        ("2 - 3 - 4", -5),
        ("-2 ** 2", -4),
        ("2 ** 3 ** 2", 512),
        ("d_model / 8", 1.5),
        ("-7 % 4", 1),
        ("7 if causal else 8", 7),
        ("not causal", False),
        ("0 or 'gelu'", "gelu"),
        ("0 and 1 / 0", 0),
        ("1 < num_heads <= 3", True),
        ("3 > num_heads < 1 / 0 if not causal else 5", 5),
        ("mask is None", True),
        ("'relu' in ('gelu', 'relu')", True),
        ("(64,) * num_heads", (64, 64, 64)),
        ("[d_model, num_heads]", (12, 3)),
        ("[d_model, num_heads][1] + (7, 8)[-2]", 10),
        ("max(1, num_heads, 2) + min((4, 5))", 7),
        ("int(8 * d_model / 3) + round(2.567, 2) + abs(-1) + float(1)", 36.57),
        ("sqrt(9)", 3.0),
        ("'a' + 'b' * 2", "abb"),
        ("  1 +\n 1 ".replace("\n", ""), 2),
        ("None", None),
    ],
)
def test_an_expression_has_the_value_that_python_gives_it(text, value):
    found = evaluate(text, SIZES)
    assert found == pytest.approx(value) if isinstance(value, float) else found == value


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 50))
def test_precedence_is_that_of_arithmetic(a, b, c):
    assert evaluate("a + b * a - b // c % 7 ", {"a": a, "b": b, "c": c}) == a + b * a - b // c % 7


def test_a_value_that_is_not_a_number_is_passed_on_unchanged():
    array = object()
    assert evaluate("x if causal else None", {"x": array, "causal": True}) is array
    assert evaluate("x is not None", {"x": array}) is True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("d_modl * 4", "unknown name d_modl; nearest: d_model"),
        ("x.shape", "a dotted name is not part of the language"),
        ("x[0]", "an array has no items: indexing is for lists"),
        ("'gelu'[0]", "a string has no items: indexing is for lists"),
        ("(1, 2)[2]", "there is no item 2 in a list of 2"),
        ("(1, 2)[-3]", "there is no item -3 in a list of 2"),
        ("(1, 2)[0:1]", "a slice is not part of the language"),
        ("(1, 2)[1.5]", "a list is indexed by a whole number, not by a number"),
        ("(1, 2)[True]", "a list is indexed by a whole number, not by a boolean"),
        ("lambda: 1", "Lambda is not part of the language"),
        ("f'{d_model}'", "JoinedStr is not part of the language"),
        ("[i for i in (1, 2)]", "ListComp is not part of the language"),
        ("(y := 3)", "NamedExpr is not part of the language"),
        ("__import__('os')", 'there is no function "__import__"'),
        ("mim(1, 2)", 'there is no function "mim"; nearest: min'),
        ("().__class__()", "there is no function"),
        ("round(1.5, ndigits=1)", "round takes no named arguments here"),
        ("max(*(1, 2))", "Starred is not part of the language"),
        ("gelu gelu", "it is not an expression (a string needs inner quotes: \"'gelu'\")"),
        ("", "it is not an expression"),
        ("1; 2", "it is not an expression"),
        ("\0", "it is not an expression"),
        ("1 / 0", "division by zero in 1 / 0"),
        ("d_model % (num_heads - 3)", "division by zero in 12 % 0"),
        ("(-1) ** 0.5", "the result is not a real number"),
        ("3j", "is not a number or string"),
        ("b'x'", "is not a number or string"),
        ("...", "is not a number or string"),
        ("sqrt(-1)", "the square root of -1 is not a real number"),
        ("1e308 * 10", "a number is not finite"),
        ("1e999", "a number is not finite"),
        ("'a' + 1", "a string + a number has no meaning here"),
        ("'%s' % 1", "a string % a number has no meaning here"),
        ("'a' < 1", "a string < a number has no meaning here"),
        ("-'a'", "a string has no sign"),
        ("x + 1", "an array + a number has no meaning here"),
        ("x == 1", "an array == a number has no meaning here"),
        ("(x,) == (x,)", "a list == a list has no meaning here"),
        ("not x", "an array is neither true nor false"),
        ("1 is 1", "is is for None only; use == or !="),
        ("int('7')", "int is for numbers, not for a string"),
        ("sqrt(1, 2)", "sqrt does not take 2 arguments"),
        ("min(())", "min does not take 0 arguments"),
    ],
)
def test_a_refusal_says_what_is_wrong(text, problem):
    with pytest.raises(ExpressionError) as caught:
        evaluate(text, {**SIZES, "x": object()})
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9 ** 9 ** 9", id="tower"),
        pytest.param("d_model ** 1000000000", id="power"),
        pytest.param("2 ** -10 ** 18 * 2 ** 2 ** 40", id="power-of-power"),
        pytest.param("'a' * 10 ** 12", id="text"),
        pytest.param("((1,) * 999,) * 999", id="list-of-lists"),
        pytest.param("'%999999999d' % 1", id="format"),
        pytest.param("round(5, -10 ** 18)", id="round"),
        pytest.param("9" * 900, id="digits"),
        pytest.param("(" * 150 + "1" + ")" * 150 + "".join("+1" for _ in range(300)), id="parentheses"),
        pytest.param("-" * 900 + "1", id="minus-signs"),
        pytest.param("1" + "+1" * 400, id="sum"),
        pytest.param("1" * 2000, id="long"),
        pytest.param("[" * 300 + "]" * 300, id="brackets"),
        pytest.param("9999999999 ** 9" + " * 9999999999 ** 9" * 20, id="product"),
    ],
)
def test_a_hostile_text_is_refused_at_once(text):
    start = time.perf_counter()
    with pytest.raises(ExpressionError):
        evaluate(text, SIZES)
    assert time.perf_counter() - start < 1.0, "milliseconds are usual; a second means that it was computed"


@given(st.text(alphabet="d1+-*/%().'\"if elsx,[]<>=!\\{}\n\t", max_size=60))
def test_any_text_has_a_value_or_an_expression_error(text):
    try:
        evaluate(text, {"d": 3, "x": object()})
    except ExpressionError:
        return
