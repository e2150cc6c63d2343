"""Whole numbers and dates in words, English and French.

    4 084        four thousand and eighty-four        quatre mille quatre-vingt-quatre
    1984-05-03   thursday the third of may nineteen eighty-four    jeudi trois mai mille neuf cent quatre-vingt-quatre

French in the spelling before 1990: *et* and blanks join what hyphens do not; *cent* and *vingt* take an s when they are
multiplied and last, but not before *mille*, which never takes one.
"""

from __future__ import annotations

import datetime as dt

__all__ = ["date_in_english", "date_in_french", "in_english", "in_french"]

_ENGLISH = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_ENGLISH_TENS = (
    "-", "-", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
_FRENCH = (
    "zéro", "un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "onze", "douze",
    "treize", "quatorze", "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf",
)  # fmt: skip
_FRENCH_TENS = (
    "-", "-", "vingt", "trente", "quarante", "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt",
)  # fmt: skip
_ORDINALS = (
    "-", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
    "twentieth",
)  # fmt: skip
_ENGLISH_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_FRENCH_MONTHS = (
    "janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre",
    "décembre",
)  # fmt: skip
_ENGLISH_WEEKDAYS = (
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday",
)  # fmt: skip
_FRENCH_WEEKDAYS = (
    "lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche",
)  # fmt: skip
LIMIT = 1_000_000


def in_english(number: int) -> str:
    """Return a number from 0 to 999,999 in English words. Raises ValueError outside that range."""
    _check(number)
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _english_hundreds(rest)
    joint = " and " if 0 < rest < 100 else " "
    return f"{_english_hundreds(thousands)} thousand" + (f"{joint}{_english_hundreds(rest)}" if rest else "")


def in_french(number: int) -> str:
    """Return a number from 0 to 999,999 in French words. Raises ValueError outside that range."""
    _check(number)
    thousands, rest = divmod(number, 1000)
    if not thousands:
        return _french_hundreds(rest, last=True)
    head = "mille" if thousands == 1 else f"{_french_hundreds(thousands, last=False)} mille"
    return head + (f" {_french_hundreds(rest, last=True)}" if rest else "")


def date_in_english(day: dt.date) -> str:
    """Return a date in English words, the year read in pairs of digits."""
    weekday, month = _ENGLISH_WEEKDAYS[day.weekday()], _ENGLISH_MONTHS[day.month - 1]
    return f"{weekday} the {_ordinal(day.day)} of {month} {_english_year(day.year)}"


def date_in_french(day: dt.date) -> str:
    """Return a date in French words, the year read as a number."""
    weekday, month = _FRENCH_WEEKDAYS[day.weekday()], _FRENCH_MONTHS[day.month - 1]
    number = "premier" if day.day == 1 else in_french(day.day)
    return f"{weekday} {number} {month} {in_french(day.year)}"


def _check(number: int) -> None:
    if not 0 <= number < LIMIT:
        raise ValueError(f"{number} is no number from 0 to {LIMIT - 1:,}")


def _english_hundreds(number: int) -> str:
    hundreds, rest = divmod(number, 100)
    if not hundreds:
        return _english_tens(rest)
    return f"{_ENGLISH[hundreds]} hundred" + (f" and {_english_tens(rest)}" if rest else "")


def _english_tens(number: int) -> str:
    if number < 20:
        return _ENGLISH[number]
    tens, one = divmod(number, 10)
    return _ENGLISH_TENS[tens] + (f"-{_ENGLISH[one]}" if one else "")


def _french_hundreds(number: int, *, last: bool) -> str:
    """Return a number below 1,000; `last` says that nothing follows, so that plurals show."""
    hundreds, rest = divmod(number, 100)
    if not hundreds:
        return _french_tens(rest, last=last)
    head = "cent" if hundreds == 1 else f"{_FRENCH[hundreds]} cent"
    if not rest:
        return f"{head}s" if hundreds > 1 and last else head
    return f"{head} {_french_tens(rest, last=last)}"


def _french_tens(number: int, *, last: bool) -> str:
    if number < 20:
        return _FRENCH[number]
    tens, one = divmod(number, 10)
    if tens in {7, 9}:  # sixty and ten, four times twenty and ten
        one += 10
    head = _FRENCH_TENS[tens]
    if one == 0:
        return f"{head}s" if tens == 8 and last else head
    if one in {1, 11} and tens < 8:
        return f"{head} et {_FRENCH[one]}"
    return f"{head}-{_FRENCH[one]}"


def _ordinal(number: int) -> str:
    """Return a number from 1 to 31 as an English ordinal."""
    if number <= 20:
        return _ORDINALS[number]
    tens, one = divmod(number, 10)
    if not one:
        return "thirtieth"
    return f"{_ENGLISH_TENS[tens]}-{_ORDINALS[one]}"


def _english_year(year: int) -> str:
    """Return a year as it is said: nineteen eighty-four, two thousand and five, twenty thirty."""
    century, rest = divmod(year, 100)
    if century % 10 == 0 and rest < 10:
        return in_english(year)
    if rest == 0:
        return f"{in_english(century)} hundred"
    return f"{in_english(century)} {'oh ' if rest < 10 else ''}{in_english(rest)}"
