"""Which names an expression uses, and what its errors show."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.language import ExpressionError, names


def test_names_are_those_of_values_not_of_functions():
    assert names("max(d_model, 3) if causal else 'num_heads'") == {"d_model", "causal"}


def test_an_error_shows_no_control_characters_and_is_short():
    with pytest.raises(ExpressionError) as caught:
        names("\x1b[31m" * 300)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 600
