"""Text from an implementation, made safe to show: no escape sequences, no control characters, bounded."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Any

__all__ = ["clean", "clean_tree", "shorten"]

_ESCAPES = re.compile(
    r"""
    (?:\x1b\[|\x9b) [0-?]* [ -/]* [@-~]?               # CSI: colors, cursor
  | (?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f]) [^\x07\x1b\x9c]* (?:\x07|\x1b\\|\x9c)?  # OSC, DCS and kin: titles, links
  | \x1b [ -/]* [0-~]?                                 # the two-character ones
    """,
    re.VERBOSE,
)
_SHORT = 100
_WITHOUT_TEXT = {int, float, bool, type(None)}
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean(text: str, limit: int | None = None) -> str:
    """Return `text` without escape sequences; control, format and surrogate characters become U+FFFD.

    Line feeds and tabs stay; carriage returns become line feeds. With `limit`, at most that many characters.
    """
    if not (text.isascii() and text.isprintable()):
        text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
        if not (text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()):
            text = "".join(map(_visible, text))
    return text if limit is None else shorten(text, limit)


def clean_tree(value: Any) -> Any:
    """Clean every text in a JSON value, keys too."""
    if isinstance(value, str):
        return _clean_again(value) if len(value) <= _SHORT else clean(value)
    if isinstance(value, list):  # most long ones hold ids
        return list(value) if set(map(type, value)) <= _WITHOUT_TEXT else [clean_tree(item) for item in value]
    if isinstance(value, dict):
        return {clean_tree(key): clean_tree(item) for key, item in value.items()}
    return value


@lru_cache(maxsize=4096)
def _clean_again(text: str) -> str:
    """Clean a short text. Cached: replies repeat the same few texts, mostly names of parameters, thousands of times."""
    return clean(text)


def shorten(text: str, limit: int) -> str:
    """Cut the middle out of a text that has more than `limit` characters, and say how much is missing."""
    if len(text) <= limit:
        return text
    half = max(0, limit // 2 - 24)
    left_out = len(text) - 2 * half
    return f"{text[:half]} … {left_out} characters left out … {text[len(text) - half :]}"[:limit]


def _visible(character: str) -> str:
    return character if character in "\n\t" or unicodedata.category(character) not in _HIDDEN else "\ufffd"
