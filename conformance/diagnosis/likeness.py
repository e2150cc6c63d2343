"""Whether two failures are the same one, read off what they say."""

from __future__ import annotations

import math
import re

from conformkit.conformance.results import Result

__all__ = ["numbers_in", "same_failure"]

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|(?<![\w.])-?(?:nan|inf)(?!\w)")
_CLOSE = 2e-4
"""Numbers are told with six digits; in float32 the last two may differ."""
_TELLING = 4
"""A number with so many digits is no coincidence."""


def same_failure(one: Result, other: Result) -> bool:
    """Return whether both failed in the same way: the same words, and the same numbers but for rounding."""
    ours, theirs = (one.message, *one.details), (other.message, *other.details)
    if one.verdict is not other.verdict or len(ours) != len(theirs):
        return False
    return all(_same_text(a, b) for a, b in zip(ours, theirs, strict=True))


def numbers_in(result: Result) -> int:
    """Return how many telling numbers a failure quotes: a match of many digits is evidence, a match of none is weak."""
    return sum(len(re.sub(r"\D", "", n.partition("e")[0]).strip("0")) >= _TELLING for n in _numbers(result.message))


def _same_text(one: str, other: str) -> bool:
    if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
        return False
    return all(_same_number(a, b) for a, b in zip(_numbers(one), _numbers(other), strict=True))


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def _same_number(one: str, other: str) -> bool:
    a, b = float(one), float(other)
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_CLOSE)
