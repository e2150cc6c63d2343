"""Output and exceptions of an implementation are shown as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.driver.wire.text import clean, clean_tree, shorten


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x1b[1;31mFAIL\x1b[0m", "FAIL"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\text", "text"),
        ("\x9b31mred", "red"),
        ("50%\r100%\r\n", "50%\n100%\n"),
        ("\x1b", ""),
        ("a\x00b\x08c", "a\ufffdb\ufffdc"),
        ("\u202egnp.exe", "\ufffdgnp.exe"),
        ("\ud800", "\ufffd"),
        ("é × √", "é × √"),
    ],
)
def test_escape_sequences_and_control_characters_are_gone(raw, shown):
    assert clean(raw) == shown


@given(st.text(alphabet=st.characters(codec=None)))
def test_whatever_is_left_can_be_printed_and_is_left_alone_by_a_second_pass(raw):
    once = clean(raw)
    assert all(c in "\n\t\ufffd" or c.isprintable() or c.isspace() for c in once)
    once.encode()
    assert clean(once) == once


@given(st.text(max_size=400), st.integers(100, 300))
def test_shortened_text_keeps_within_its_limit(text, limit):
    assert len(shorten(text, limit)) <= limit


def test_shortened_text_says_how_much_is_missing():
    short = shorten("a" * 500 + "z" * 500, 200)
    assert short.startswith("aaa")
    assert short.endswith("zzz")
    assert "characters left out" in short


def test_every_text_of_a_tree_is_cleaned():
    assert clean_tree({"\x1b[1ma": ["\x07", {"b": "\r"}, 3, None]}) == {"a": ["\ufffd", {"b": "\n"}, 3, None]}
