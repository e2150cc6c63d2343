"""How foreign text and numbers of things are written in a report."""

from __future__ import annotations

from conformkit.conformance.driver.text import clean

__all__ = ["count", "one_line", "plain"]


def plain(text: str, limit: int = 2000) -> str:
    """Return text that a terminal, a log and an XML parser show as it is: nothing invisible, no tabs, bounded."""
    return clean(text, limit).replace("\t", "    ")


def one_line(text: str, limit: int = 400) -> str:
    """Return the same on a single line, for names and places: no line of a report can be forged through them."""
    return " ".join(plain(text, limit).split())


def count(number: int, noun: str) -> str:
    """Return `1 clause`, `2 clauses`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
