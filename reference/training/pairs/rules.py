"""Pairs of texts that a rule makes: rows of letters, and English sentences with their French translations.

    copy: abca → abca        reverse: abca → acba        sort: abca → aabc
    translation: "it was friday the first of may …" → "c'était le vendredi premier mai …"

No source occurs twice, so held-out pairs are new ones. The same number of pairs is the same list everywhere.
"""

from __future__ import annotations

import datetime as dt
import string
from collections.abc import Callable, Iterator

import numpy as np

from conformkit.reference.errors import RefusalError
from conformkit.reference.training.config import Data
from conformkit.reference.training.pairs.numerals import date_in_english, date_in_french, in_english, in_french

__all__ = ["Pair", "RuleError", "pairs_by_rule"]

Pair = tuple[str, str]
"""A source and its target."""

FIRST_DAY = dt.date(1900, 1, 1)
DAYS = 51_134
"""Up to the end of 2039."""
TRIES = 50
"""Draws for each pair after which the rule is said to have no more."""

Source = np.random.Generator


class RuleError(RefusalError):
    """A rule cannot make that many different pairs."""


def pairs_by_rule(data: Data, seed: int = 0) -> list[Pair]:
    """Return `data.pairs` pairs with different sources. Raises RuleError where the rule has fewer."""
    found: dict[str, str] = {}
    for tried, (source, target) in enumerate(_drawn(data, np.random.default_rng(seed))):
        found.setdefault(source, target)
        if len(found) == data.pairs:
            return list(found.items())
        if tried > TRIES * data.pairs:
            break
    got = f"{data.pairs}, and there are about {len(found)} different ones"
    raise RuleError("data.pairs", got, "fewer, or more letters: data.symbols, data.longest")


def _drawn(data: Data, source: Source) -> Iterator[Pair]:
    if data.task == "translation":
        while True:
            yield _SENTENCES[int(source.integers(len(_SENTENCES)))](source)
    change = _CHANGES[data.task]
    letters = np.array(list(string.ascii_lowercase[: data.symbols]))
    while True:
        length = int(source.integers(data.shortest, data.longest + 1))
        row = "".join(letters[source.integers(data.symbols, size=length)])
        yield row, change(row)


_CHANGES: dict[str, Callable[[str], str]] = {
    "copy": lambda row: row, "reverse": lambda row: row[::-1], "sort": lambda row: "".join(sorted(row)),
}  # fmt: skip


def _number(source: Source, least: int = 0) -> int:
    """Draw a number with as many digits, 1 to 6, as any other count."""
    digits = int(source.integers(1, 7))
    return max(int(source.integers(10**digits)), least)


def _day(source: Source) -> dt.date:
    return FIRST_DAY + dt.timedelta(days=int(source.integers(DAYS)))


def _amount(source: Source) -> Pair:
    number = _number(source)
    return in_english(number), in_french(number)


def _date(source: Source) -> Pair:
    day = _day(source)
    return f"it was {date_in_english(day)}", f"c'était le {date_in_french(day)}"


def _visit(source: Source) -> Pair:
    day, number = _day(source), _number(source, least=2)
    return (
        f"{in_english(number)} people came on {date_in_english(day)}",
        f"le {date_in_french(day)} , {in_french(number)} personnes sont venues",
    )


_SENTENCES = (_amount, _date, _visit)
