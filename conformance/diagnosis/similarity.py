"""How similar two failures of a clause are, judged by what was found.

The error in units of the tolerance depends on the component, and the position of the worst entry may depend on
rounding: neither is compared, and neither are the names of parameters. Sampled frequencies only need to be near.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import IntEnum

from conformkit.conformance.engine.known_errors import known_error
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.statements import Statement, statement

__all__ = ["Likeness", "at_most", "likeness", "telling"]

_CLOSE = 2e-4
"""Numbers are compared to six digits; in float32 the last two may differ."""
_TELLING = 4
"""A number with this many digits is not a coincidence, unless it counts something."""
_FREQUENCY_TOLERANCE, _SPREAD = 0.1, 0.02
"""How near relative frequencies must be, and counts of at least this size:"""
_APART = 0.15
"""Factors of logits that are further apart, relatively, are those of two mistakes."""
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_SAMPLED_COUNT = 100
_SPREADS = 3.0
"""So many roots of a count apart, two counts are not those of the same probability."""


class Likeness(IntEnum):
    """How similar two failures are."""

    NONE = 0
    """The other result is not a failure."""
    RED = 1
    """Both are red, in different ways."""
    KIND = 2
    """The same verdict under the same sizes and options."""
    WORDS = 3
    """The same words."""
    COUNTS = 4
    """The same words, and the same whole numbers in them."""
    SAME = 5
    """The same words and numbers, none of them distinctive."""
    DRAWS = 6
    """The same words, and the same numbers about draws to every digit."""
    EXACT = 7
    """The same words and numbers, one of them a result with many digits."""


def likeness(one: Result, other: Result) -> Likeness:
    """Return how similar a failure of a clause and another result on it are."""
    if not other.verdict.red:
        return Likeness.NONE
    if one.verdict is not other.verdict or one.finding is None or other.finding is None:
        return Likeness.RED
    known = known_error(one)
    if known is not None and known.foreign:  # a machine without a GPU is no mistake of the component
        return Likeness.RED
    if known is not known_error(other) or _by_framework(one.finding) != _by_framework(other.finding):
        return Likeness.RED  # the error's own words name the mistake
    return _of_findings(one, other, one.finding, other.finding)


def _of_findings(one: Result, other: Result, found: Finding, their: Finding) -> Likeness:
    ours, theirs = statement(found), statement(their)
    factors = [_drawn_as_if(found), _drawn_as_if(their)]
    if any(factors) and ours.setting == theirs.setting:  # which event is the worst, is chance
        return Likeness.SAME if ours.set == theirs.set and _alike(*factors) else Likeness.RED
    if (ours.phrases, ours.setting) != (theirs.phrases, theirs.setting):
        return Likeness.KIND if _under_the_same(one, other) else Likeness.RED
    return _of_numbers(found, ours, theirs)


def _drawn_as_if(found: Finding) -> str:
    """Return what a check of draws says of its logits: the number that they were multiplied by; else nothing."""
    said = next((note for note in found.notes if note.startswith("as if:")), "")
    number = _NUMBER.search(said)
    return number.group() if number else said


def _alike(one: str, other: str) -> bool:
    if _NUMBER.fullmatch(one) and _NUMBER.fullmatch(other):
        return math.isclose(float(one), float(other), rel_tol=_APART)
    return one == other


def _by_framework(found: Finding) -> bool:
    """Whether a framework raised it: a refusal in the code's own words is mostly another type."""
    return found.error == "RuntimeError"


def at_most(result: Result) -> Likeness:
    """Return the highest possible similarity to this failure: words of exceptions differ between implementations."""
    found = result.finding
    if result.verdict is not Verdict.FAIL or found is None:
        return Likeness.KIND
    if found.own_draws:
        return Likeness.COUNTS
    return Likeness.EXACT if telling(result) and not found.sampled else Likeness.SAME


def telling(result: Result) -> bool:
    """Whether a failure has a result with enough digits that a match is not a coincidence."""
    return result.finding is not None and _tells(result.finding, statement(result.finding))


def _tells(found: Finding, said: Statement) -> bool:
    got = said.got
    if found.kind is Kind.NUMBERS and found.form.startswith("float"):
        return any(not _plain(number) for number in got)  # a printed 4 was 4.00000
    return any("." in n and len(re.sub(r"\D", "", n.partition("e")[0]).strip("0")) >= _TELLING for n in got)


def _of_numbers(one: Finding, ours: Statement, theirs: Statement) -> Likeness:
    """Compare findings with the same phrases."""
    got, want, other_got, other_want = ours.all_got, ours.want, theirs.all_got, theirs.want
    if len(got) != len(other_got) or len(want) != len(other_want):
        return Likeness.WORDS
    if _all_same([*got, *want], [*other_got, *other_want], sampled=one.sampled):
        if not one.sampled:
            return Likeness.EXACT if _tells(one, ours) else Likeness.SAME
        shares = any("." in number for number in (*ours.got, *ours.noted))  # settings are the same for all
        return Likeness.DRAWS if shares and _all_same(got, other_got) else Likeness.SAME
    if [math.isfinite(float(n)) for n in got] != [math.isfinite(float(n)) for n in other_got]:
        return Likeness.RED
    if _all_same(want, other_want) and not all(map(_plain, want)):
        return Likeness.RED  # different results although the same is wanted
    whole = [(a, b) for a, b in zip(got, other_got, strict=True) if a.isdigit() or b.isdigit()]
    return Likeness.COUNTS if whole and all(a == b for a, b in whole) else Likeness.WORDS


def _under_the_same(one: Result, other: Result) -> bool:
    """Whether both failed under the same sizes and options; if none are given, whether both raised."""
    ours, theirs = (str(r.finding.setting or "") if r.finding is not None else "" for r in (one, other))
    return ours == theirs and bool(ours or one.verdict is not Verdict.FAIL)


def _all_same(ours: Sequence[str], theirs: Sequence[str], *, sampled: bool = False) -> bool:
    return all((_near if sampled else _same)(a, b) for a, b in zip(ours, theirs, strict=True))


def _same(one: str, other: str) -> bool:
    a, b = float(one), float(other)
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_CLOSE)


def _near(one: str, other: str) -> bool:
    """Compare relative frequencies and large counts loosely, ids and sizes exactly."""
    a, b = float(one), float(other)
    if one.isdigit() and other.isdigit() and a < _SAMPLED_COUNT:
        return a == b
    if one.isdigit() and other.isdigit():
        return abs(a - b) <= _SPREADS * math.sqrt(min(a, b))
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_FREQUENCY_TOLERANCE, abs_tol=_SPREAD)


def _plain(number: str) -> bool:
    """Whether it is a trivial number: 0, ±1, or not finite."""
    return not math.isfinite(float(number)) or abs(float(number)) in {0.0, 1.0}
