"""Marks in the names of parameters: what is counted there, `{2*i+1}` for every second entry of a list.

A mark is an affine expression of one counter or several: i counts layers, h heads, t rows (ids or positions), f hidden
units, e experts, each from 0; n is the number of layers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

__all__ = ["ITEMS", "MarkError", "counted", "counters", "unmarked"]

ITEMS: Mapping[str, str] = {"h": "heads", "t": "rows", "f": "hidden units", "e": "experts"}
"""Counters of parts of one array, and what they count: there is one parameter for each."""
_COUNTERS = ("i", "n", *ITEMS)
_MARK = re.compile(r"\{([^{}]*)\}")
_TERM = re.compile(
    r"\s*([+-])\s*(?:(\d{1,4})\s*\*\s*([a-z])|([a-z])\s*\*\s*(\d{1,4})|([a-z])|(\d{1,4}))(?=\s*(?:[+-]|$))"
)


class MarkError(ValueError):
    """A mark is no affine expression of counters, or counts below 0; the message says which and why."""


@lru_cache(maxsize=4096)
def counters(name: str) -> frozenset[str]:
    """Return the counters in a name. Raises MarkError if a mark is invalid."""
    marks = _MARK.findall(name)
    if (rest := _MARK.sub("", name)) != rest.replace("{", "").replace("}", ""):
        raise MarkError(f"a brace in {name} is not closed: a mark is {{i}}, {{h}} or {{2*i+1}}")
    return frozenset(letter for mark in marks for letter in _terms(mark) if letter)


def counted(name: str, values: Mapping[str, int]) -> str:
    """Return a name with values for some counters; a mark without others becomes a number. Raises MarkError."""
    return _MARK.sub(lambda mark: _written(mark[1], values), name)


def unmarked(name: str) -> str:
    """Return a name with 0 for each mark: what is left has no sign of a mark's arithmetic."""
    return _MARK.sub("0", name)


@lru_cache(maxsize=1024)
def _terms(mark: str) -> Mapping[str, int]:
    """Return the factor of each counter, and the constant under an empty name."""
    found: dict[str, int] = {}
    text = mark.strip()
    rest = text if text[:1] in {"+", "-"} else f"+{text}"
    while rest.strip():
        term = _TERM.match(rest)
        if term is None:
            raise MarkError(f"{{{mark}}} is not affine in a counter, as {{i}}, {{h}} or {{2*i+1}} are")
        sign, factor, letter, other, later, alone, constant = term.groups()
        name = letter or other or alone or ""
        if name and name not in _COUNTERS:
            known = "i (layers), n (their number), h (heads), t (rows), f (hidden units), e (experts)"
            raise MarkError(f"{{{mark}}} counts {name}: known are {known}")
        found[name] = found.get(name, 0) + int(f"{sign}{factor or later or constant or 1}")
        rest = rest[term.end() :]
    if not any(found.get(name) for name in _COUNTERS):
        raise MarkError(f"{{{mark}}} counts nothing: a mark is {{i}}, {{h}} or {{2*i+1}}")
    return found


def _written(mark: str, values: Mapping[str, int]) -> str:
    terms = _terms(mark)
    number = terms.get("", 0) + sum(factor * values[name] for name, factor in terms.items() if name in values)
    left = {name: factor for name, factor in terms.items() if name and factor and name not in values}
    if left:
        return "{" + "".join(f"{factor:+d}*{name}" for name, factor in left.items()) + f"{number:+d}" + "}"
    if number < 0:
        raise MarkError(f"{{{mark}}} counts to {number}, and entries of a list are counted from 0")
    return str(number)
