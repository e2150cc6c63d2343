"""How errors about a user's file quote its words, and what they suggest instead."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["hint", "nearest", "shown"]


def shown(text: object, limit: int = 80) -> str:
    """Return a text from outside in quotes, without control characters and of bounded length."""
    plain = str(text)
    cut = plain if len(plain) <= limit else plain[: limit - 1] + "…"
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + '"'


def nearest(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return the known words that a misspelt one most likely means, the likeliest first."""
    plain = {k.casefold().replace("_", ""): k for k in known}
    found = difflib.get_close_matches(word[:100].casefold().replace("_", ""), plain, n=count, cutoff=0.6)
    return tuple(plain[match] for match in found)


def hint(words: Iterable[str], otherwise: str = "") -> str:
    """Return advice that names the nearest words, `otherwise` if there are none."""
    listed = ", ".join(words)
    return f"nearest: {listed}" if listed else otherwise
