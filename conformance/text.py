"""How foreign text and counts are written in a report."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformkit.conformance.driver.wire.text import clean

__all__ = ["INSTALL_TORCH", "count", "listed", "number", "one_line", "plain", "rounded"]

INSTALL_TORCH = "install it, here without the gigabytes for GPUs: pip install torch --index-url https://download.pytorch.org/whl/cpu"
_COMMAND = re.compile(
    r"""
    ::(?=(?:add-|debug|echo|endgroup|error|group|internal-|notice|remove-|save-|set-|stop-|warning)[^\n]*::)  # GitHub's
  | \#\#(?=(?:vso|teamcity)?\[)                                               # Azure's and TeamCity's
    """,
    re.VERBOSE | re.IGNORECASE,
)


def plain(text: str, limit: int = 2000) -> str:
    """Return text that a terminal, a log and an XML parser show unchanged: nothing invisible, no tabs, bounded length.

    CI runners look for commands in every printed line: the marks of such commands are broken up.
    """
    return _COMMAND.sub(lambda mark: " ".join(mark[0]), clean(text, limit).replace("\t", "    "))


def one_line(text: str, limit: int = 400) -> str:
    """Return the same on a single line, for names and places, so that they cannot forge a line of a report."""
    return " ".join(plain(text, limit).split())


def count(number: int, noun: str) -> str:
    """Return `1 clause`, `2 clauses`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return `a, b and 3 more`: at most `most` names, and the number of the others."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def rounded(value: float) -> float:
    """Return points as all outputs of a grade show them."""
    return round(float(value), 2)


def number(value: float) -> str:
    """Return a number of points or a share with at most two decimals: `7`, `7.5`, `0.33`."""
    return f"{rounded(value):.2f}".rstrip("0").rstrip(".")
