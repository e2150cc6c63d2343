"""How errors quote and suggest."""

from __future__ import annotations

from conformkit.conformance.binding.messages import hint, nearest, shown


def test_shown_escapes_and_shortens():
    assert shown("a\x1b\n") == '"a\\x1b\\n"'
    assert shown("x" * 99, 10) == '"' + "x" * 9 + '…"'


def test_nearest_ignores_case_and_underscores():
    assert nearest("scaled_dot_product", ["ScaledDotProductAttention", "FeedForward"]) == ("ScaledDotProductAttention",)


def test_a_hint_lists_near_names_or_gives_the_other_advice():
    assert hint(["min", "max"], "known: abs") == "nearest: min, max"
    assert (hint([], "known: abs"), hint(())) == ("known: abs", "")
