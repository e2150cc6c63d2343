"""Text of conform.toml: whatever a value holds, it is in one line and is read back as it was."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.binding.toml_text import choice_line, line, lines, table_text

texts = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = texts | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False)
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))


@given(texts, values)
def test_a_value_is_one_line_and_survives(key: str, value: Any) -> None:
    """Catches a delete character that is not escaped, a key that needs quotes, and a list over several lines."""
    text = line(key, value)
    assert "\n" not in text
    assert repr(tomllib.loads(text)) == repr({key: value})


def test_weights_stand_in_a_table_of_their_own() -> None:
    """Catches keys after `weights` that would be read as weights."""
    table = {"path": "m:A", "weights": {"c_attn.weight": "q.weight"}, "output": 0}
    assert lines("x", table) == ["[x]", 'path = "m:A"', "output = 0", "", "[x.weights]", '"c_attn.weight" = "q.weight"']
    assert tomllib.loads(table_text("A", table)) == {"components": {"A": table}}


@pytest.mark.parametrize(
    ("value", "text"),
    [("2", "2"), ("d_model // 4", '"d_model // 4"'), (False, "false"), (1.0000001, "1.0000001"), ("rms", '"rms"')],
    ids=["number-of-heads", "expression", "flag", "eight-digits", "word"],
)
def test_a_choice_is_written_as_a_file_declares_it(value: Any, text: str) -> None:
    """Catches heads in quotes, and a number that is rounded to six digits."""
    assert choice_line("choice", value) == f"choice = {text}"
