"""How similar two failures of a clause are, judged by their messages.

The quoted error depends on the component's tolerance, and the position of the worst entry may depend on rounding:
neither is compared, and neither are the names of parameters. Sampled frequencies only need to be near.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from enum import IntEnum

from conformkit.conformance.engine.known_errors import known_error
from conformkit.conformance.engine.results import Result, Verdict

__all__ = ["Likeness", "at_most", "likeness", "says_little", "telling"]

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|(?<![\w.])-?(?:nan|inf)(?!\w)")
_TOLERANCE = re.compile(r" \((?P<format>\w+), (?:exactly|relative tolerance \S+)\)|, \S+ times what is allowed")
_PLACE = re.compile(r"(?<=\w)\[\d+(?:, \d+)*\]")
"""The position of an entry, `output[0, 3]`; not a list of ids."""
_NAME = re.compile(r"`[^`\n]+`|(?<![\w.])[^\W\d]\w*(?:\.\w+)+")
"""An implementation's name of a parameter, quoted or dotted; the reference uses another name."""
_WANTED = re.compile(r"\b(?:want|wanted|expected)\b")
_DIFFER = re.compile(r"^(?P<some>\d+) of (?P<all>\d+) entries differ")
_COMPARED = {"oracle", "golden"}
"""Evidence of clauses that compare numbers with the definition's."""
_OWN_DRAWS = "as constructed"
"""What comes from an implementation's own initialization has other numbers each time."""
_LISTS = ("yours", "the definition's")
_CLOSE = 2e-4
"""Numbers are printed with six digits; in float32 the last two may differ."""
_TELLING = 4
"""A number with this many digits is not a coincidence, unless it counts something."""
_NEAR, _SPREAD = 0.1, 0.02
"""How near relative frequencies must be, and counts of at least this size:"""
_MANY = 100


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
    if one.verdict is not other.verdict:
        return Likeness.RED
    known = known_error(one)
    if known is not None and known.foreign:  # a machine without a GPU is no mistake of the component
        return Likeness.RED
    ours, theirs = _texts(one), _texts(other)
    if [_NUMBER.sub("#", text) for text in ours] != [_NUMBER.sub("#", text) for text in theirs]:
        return Likeness.KIND if _under_the_same(one, other) else Likeness.RED
    return _of_numbers(one, ours, theirs)


def at_most(result: Result) -> Likeness:
    """Return the highest possible similarity to this failure: words of exceptions differ between implementations."""
    if result.verdict is not Verdict.FAIL:
        return Likeness.KIND
    if _OWN_DRAWS in result.message:
        return Likeness.COUNTS
    return Likeness.EXACT if telling(result) and not _sampled(result) else Likeness.SAME


def says_little(result: Result, like: Likeness) -> bool:
    """Whether this likeness is what any mistake has: a comparison with the definition fails in the same words always.

    That as many entries are wrong says something unless all are, and so does a size from which on they are.
    """
    found = next(filter(None, map(_DIFFER.match, result.details)), None)
    if found is None or not _COMPARED.issuperset(result.clause.evidence):
        return False
    every = found["some"] == found["all"] and not result.threshold
    return like <= Likeness.WORDS or (like is Likeness.COUNTS and every)


def telling(result: Result) -> bool:
    """Whether a failure quotes a result with enough digits that a match is not a coincidence."""
    got = _NUMBER.findall(_halves(_texts(result)[:1])[0])
    match = _TOLERANCE.search(result.message)
    if match is not None and (match["format"] or "").startswith("float"):
        return any(not _plain(number) for number in got)  # a printed 4 was 4.00000
    return any("." in n and len(re.sub(r"\D", "", n.partition("e")[0]).strip("0")) >= _TELLING for n in got)


def _sampled(result: Result) -> bool:
    return any(words in result.message for words in (" draws", " was sampled ", ": a share of "))


def _counted(texts: list[str]) -> bool:
    """Whether the numbers about draws contain a share or a mean; settings are the same for all."""
    got, _ = _halves([text for text in texts if not text.startswith("with ")])
    return any("." in number for number in _NUMBER.findall(got))


def _of_numbers(one: Result, ours: list[str], theirs: list[str]) -> Likeness:
    """Compare failures whose messages have the same words."""
    sampled = _sampled(one)
    (got, want), (other_got, other_want) = (tuple(map(_NUMBER.findall, _halves(texts))) for texts in (ours, theirs))
    if _all_same([*got, *want], [*other_got, *other_want], sampled=sampled):
        if not sampled:
            return Likeness.EXACT if telling(one) else Likeness.SAME
        return Likeness.DRAWS if _counted(ours) and _all_same(got, other_got) else Likeness.SAME
    if [math.isfinite(float(n)) for n in got] != [math.isfinite(float(n)) for n in other_got]:
        return Likeness.RED
    if _all_same(want, other_want) and not all(map(_plain, want)):
        return Likeness.RED  # different results although the same is wanted
    whole = [(a, b) for a, b in zip(got, other_got, strict=True) if a.isdigit() or b.isdigit()]
    return Likeness.COUNTS if whole and all(a == b for a, b in whole) else Likeness.WORDS


def _texts(result: Result) -> list[str]:
    """Return its text without lists of parameters, whose names differ between implementations."""
    told = (result.message, *(line for line in result.details if not line.startswith(_LISTS)))
    return [_without_names(_PLACE.sub("[]", _TOLERANCE.sub("", text))) for text in told]


def _without_names(text: str) -> str:
    """Remove the implementation's names of parameters; settings of a clause use the contract's names and stay."""
    return text if text.startswith("with ") else _NAME.sub("…", text)


def _halves(texts: list[str]) -> tuple[str, str]:
    """Return the actual and the wanted numbers: after that word, or in details that begin with such a word."""
    got, _, rest = texts[0].partition("want")
    want, _, further = rest.partition(";")
    wanted = [text for text in texts[1:] if _WANTED.match(text)]
    return " ".join([got, further, *(text for text in texts[1:] if text not in wanted)]), " ".join([want, *wanted])


def _under_the_same(one: Result, other: Result) -> bool:
    """Whether both failed under the same sizes and options; if none are given, whether both raised."""
    ours, theirs = ([line for line in result.details if line.startswith("with ")] for result in (one, other))
    return ours == theirs and bool(ours or one.verdict is not Verdict.FAIL)


def _all_same(ours: Iterable[str], theirs: Iterable[str], *, sampled: bool = False) -> bool:
    return all((_near if sampled else _same)(a, b) for a, b in zip(ours, theirs, strict=True))


def _same(one: str, other: str) -> bool:
    a, b = float(one), float(other)
    return a == b or (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_CLOSE)


def _near(one: str, other: str) -> bool:
    """Compare relative frequencies and large counts loosely, ids and sizes exactly."""
    a, b = float(one), float(other)
    if one.isdigit() and other.isdigit() and a < _MANY:
        return a == b
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=_NEAR, abs_tol=_SPREAD)


def _plain(number: str) -> bool:
    """Whether it is a trivial number: 0, ±1, or not finite."""
    return not math.isfinite(float(number)) or abs(float(number)) in {0.0, 1.0}
