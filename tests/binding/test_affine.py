"""Affine functions of a weight: their scale and offset, and what is not affine."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.affine import Affine, affine
from conformkit.conformance.binding.language import ExpressionError

SIZES = {"d_model": 12, "causal": True}


@pytest.mark.parametrize(
    ("text", "scale", "offset"),
    [
        ("w - 1", 1, -1),
        ("1 - w", -1, 1),
        ("-(w + 3) / 2", -0.5, -1.5),
        ("2 * w - w / 2 + d_model", 1.5, 12),
        ("w / d_model ** 0.5", 12**-0.5, 0),
        ("w if causal else -w", 1, 0),
        ("+w", 1, 0),
    ],
)
def test_an_affine_expression_gives_scale_and_offset(text, scale, offset):
    found = affine(text, "w", SIZES)
    assert (found.scale, found.offset) == (pytest.approx(scale), pytest.approx(offset))


@pytest.mark.parametrize("text", ["w * w", "w ** 2", "1 / w", "w // 2", "w / 0", "w + 'a'", "w % 2", "2 ** w"])
def test_what_is_not_affine_is_refused(text):
    with pytest.raises(ExpressionError, match="it is not affine in the weight"):
        affine(text, "w", SIZES)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("d_model", "does not depend on the weight"),
        ("w - w", "multiplied by 0"),
        ("0 * w", "multiplied by 0"),
        ("max(w, 1)", "max is for numbers, not for the weight"),
        ("w > 1", "the weight > a number has no meaning here"),
    ],
)
def test_what_cannot_be_undone_is_refused(text, problem):
    with pytest.raises(ExpressionError, match=problem):
        affine(text, "w", SIZES)


def test_the_difference_of_two_affine_functions_is_affine():
    assert affine("3 * w - (w - 1)", "w", {}) == Affine(2, 1)
