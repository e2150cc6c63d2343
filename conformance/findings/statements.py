"""What two findings have in common, field by field: phrases without their numbers, and the numbers as they are shown.

A label is a phrase that may hold numbers of its own, `id 3 was sampled 902 times in 2000 draws, not about 1915`. Names
of parameters and positions in it belong to one implementation and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from conformkit.conformance.findings.finding import FactValue, Finding, Kind
from conformkit.conformance.findings.threshold import Threshold
from conformkit.conformance.findings.words import number

__all__ = ["Statement", "indistinguishable", "statement"]

_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|(?<![\w.])-?(?:nan|inf)(?!\w)")
_PLACE = re.compile(r"(?<=\w)\[\d+(?:, \d+)*\]")
"""The position of an entry in a label, `output[0, 3]`; not a list of ids."""
_NAME = re.compile(r"`[^`\n]+`|(?<![\w.])[^\W\d]\w*(?:\.\w+)+")
"""An implementation's name of a parameter, quoted or dotted; the reference uses another name."""
_WANTED = re.compile(r"\b(?:want|wanted|expected)\b")
_LISTS = ("yours", "the definition's", "as if:")
"""Notes that list parameters by an implementation's own names, or that say what draws are like."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A finding as phrases without numbers, and the numbers as text, by where they come from."""

    phrases: tuple[str, ...]
    setting: str
    got: tuple[str, ...]
    noted: tuple[str, ...]
    set: tuple[str, ...]
    want: tuple[str, ...]

    @property
    def all_got(self) -> tuple[str, ...]:
        """All numbers that are not wanted ones."""
        return (*self.got, *self.noted, *self.set)


def statement(found: Finding) -> Statement:
    """Return what can be compared of a finding: not the error in units of the tolerance, and not where it is worst."""
    label, before, wanted = _halves(f"{found.error}: {found.said}" if found.error or found.said else found.label)
    notes = [_halves(note, note=True) for note in found.notes if not note.startswith(_LISTS)]
    setting = str(found.setting) if found.setting is not None else ""
    got, want = _results(found)
    return Statement(
        (found.kind, *_phrases(found), label, *(phrase for phrase, _, _ in notes)),
        _NUMBER.sub("#", setting), (*_sizes(found.threshold), *before, *got),
        (*_counts(found), *(number for _, ours, _ in notes for number in ours)), tuple(_NUMBER.findall(setting)),
        (*wanted, *want, *(number for _, _, theirs in notes for number in theirs)),
    )  # fmt: skip


def indistinguishable(one: Finding | None, other: Finding | None) -> bool:
    """Whether both show the same everywhere, to six digits."""
    return one == other or (one is not None and other is not None and _shown(one) == _shown(other))


def _shown(found: Finding) -> tuple[object, ...]:
    numbers = (found.got, found.want, found.worst, found.ratio, found.tolerance)
    rest = replace(found, got=None, want=None, worst=None, allowed=None, tolerance=None)
    return (*map(number, numbers), rest)


def _halves(text: str, *, note: bool = False) -> tuple[str, list[str], list[str]]:
    """Return a text without names and numbers, its numbers, and those after `expected`, which begins a note."""
    bare = _NAME.sub("…", _PLACE.sub("[]", text))
    split = _WANTED.match(bare) if note else _WANTED.search(bare)
    before, rest = (bare[: split.start()], bare[split.end() :]) if split else (bare, "")
    wanted, _, further = rest.partition(";") if not note else (rest, "", "")
    return _NUMBER.sub("#", bare), _NUMBER.findall(f"{before} {further}"), _NUMBER.findall(wanted)


def _phrases(found: Finding) -> Iterator[str]:
    """Yield what of the other fields has no numbers: names of number formats, numbers of axes, the pattern of sizes."""
    yield from (str(value) for value in (found.got, found.want) if isinstance(value, bool | str | complex))
    if isinstance(found.got, tuple) and isinstance(found.want, tuple):
        yield f"{len(found.got)} {len(found.want)}"
    if found.kind is Kind.NOT_ZERO:
        yield "almost" if found.allowed else "exactly"
    if found.rows:
        yield f"{len(found.rows)} rows"
    threshold = found.threshold
    while threshold is not None:
        yield f"{threshold.pattern} {threshold.sizes} {threshold.joined} {bool(threshold.step)} {threshold.more > 0}"
        threshold = threshold.further


def _results(found: Finding) -> tuple[list[str], list[str]]:
    """Return the numbers that came out, and those wanted."""
    if found.kind is Kind.NUMBERS:
        return list(_shown_numbers(found.got)), list(_shown_numbers(found.want))
    if isinstance(found.got, tuple) and isinstance(found.want, tuple):
        return list(map(str, found.got)), list(map(str, found.want))
    if found.kind is Kind.NOT_ZERO:
        return [number(found.got), *map(str, (found.bad, found.of))], [number(found.allowed or 0)]
    if found.kind is Kind.NOT_FINITE:
        return [str(found.got), *map(str, (found.bad, found.of))], []
    return [], [number(found.allowed)] if found.kind is Kind.UNCHANGED else []


def _shown_numbers(value: FactValue) -> Iterator[str]:
    """Yield a number as it is shown; truth values and names are phrases."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield number(value)


def _counts(found: Finding) -> Iterator[str]:
    if found.kind is Kind.NUMBERS and found.of:
        yield from map(str, (found.bad, found.of))
        yield from _shown_numbers(found.worst)
    yield from map(str, found.rows)


def _sizes(threshold: Threshold | None) -> Iterator[str]:
    while threshold is not None:
        beside = (threshold.last, threshold.beyond)
        yield from (str(n) for n in (threshold.first, *beside, threshold.step, threshold.ratio, threshold.more) if n)
        threshold = threshold.further
