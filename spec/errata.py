"""Errors and contradictions of the sources, as data: points are read from `errata.md`, which is also a document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from conformkit.spec.clauses import clause

__all__ = ["Erratum", "ErratumSyntaxError", "Value", "errata", "errata_of", "parse"]

Value: TypeAlias = "Decimal | str | tuple[Value, ...]"
"""A number with its printed digits, a word such as the name of an exception, or rows of them."""


@dataclass(frozen=True, slots=True)
class Erratum:
    """One point on which a source is wrong, contradicts itself or disagrees with another.

    `recomputed` contains the numbers that show it, by name. `clauses` are the ids that follow the ruling; if there are
    none, `reason` says why.
    """

    id: str
    title: str
    claim: str
    why: str
    recomputed: Mapping[str, Value]
    ruling: str
    clauses: tuple[str, ...]
    reason: str
    subject: str
    line: int


class ErratumSyntaxError(ValueError):
    """The list of errata violates the form that its introduction describes."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"errata.md, line {line}: {problem}")
        self.line, self.problem = line, problem


MAX_TITLE = 99
MAX_VALUE = 400
"""Maximum number of characters of one value, so that readers can compare it by eye."""

_FIELDS = ("Claim", "Why", "Recomputed", "Ruling", "Clauses")
_HEADING = re.compile(r"### (ERR-\d{2,3})$")
_FIELD = re.compile(rf"({'|'.join(_FIELDS)}):(?: |$)")
_PAIR = re.compile(r"`(?P<name>[^`=]+) = (?P<value>[^`]+)`")
_CLAUSE_ID = re.compile(r"[A-Z0-9]+(?:-[A-Z0-9]+)+$")

Paragraph = tuple[int, str]
"""The line on which a paragraph begins, and its text."""


@cache
def errata() -> Mapping[str, Erratum]:
    """Return all points by id, in the order of the document."""
    return parse(files(__package__).joinpath("errata.md").read_text(encoding="utf-8"))


def errata_of(clause_id: str) -> tuple[Erratum, ...]:
    """Return the points whose ruling a clause follows; raise UnknownClauseError if there is no such clause."""
    wanted = clause(clause_id).id
    return tuple(point for point in errata().values() if wanted in point.clauses)


def parse(text: str) -> Mapping[str, Erratum]:
    """Return the points of a document by id. A heading `## …` is the subject of the points below it."""
    lines = text.splitlines()
    marks = [n for n, line in enumerate(lines) if line.startswith(("## ", "### "))]
    found: dict[str, Erratum] = {}
    subject = ""
    for start, end in zip(marks, [*marks[1:], len(lines)], strict=True):
        if lines[start].startswith("## "):
            subject = lines[start].removeprefix("## ").strip()
            continue
        point = _erratum(subject, start + 1, lines[start], lines[start + 1 : end])
        if point.id in found:
            raise ErratumSyntaxError(point.line, f"{point.id} is defined twice")
        found[point.id] = point
    return found


def _erratum(subject: str, line: int, heading: str, body: list[str]) -> Erratum:
    match = _HEADING.match(heading)
    if not match:
        raise ErratumSyntaxError(line, f"a point begins with '### ERR-07', not {heading!r}")
    if not subject:
        raise ErratumSyntaxError(line, f"{match[1]} comes before the first subject ('## …')")
    (title_line, title), *rest = [*_paragraphs(line + 1, body)] or [(line, "")]
    if not 0 < len(title) <= MAX_TITLE or _FIELD.match(title):
        raise ErratumSyntaxError(title_line, f"{match[1]}: a title of at most {MAX_TITLE} characters comes first")
    values = _values(match[1], line, rest)
    clause_ids, reason = _clauses(match[1], *values["Clauses"])
    return Erratum(
        id=match[1], title=title, claim=values["Claim"][1], why=values["Why"][1],
        recomputed=_pairs(match[1], *values.get("Recomputed", (line, ""))), ruling=values["Ruling"][1],
        clauses=clause_ids, reason=reason, subject=subject, line=line,
    )  # fmt: skip


def _paragraphs(line: int, body: list[str]) -> Iterator[Paragraph]:
    """Join continuation lines: a paragraph starts with a field's name, the title is the first line."""
    begun: list[Paragraph] = []
    for number, raw in enumerate(body, start=line):
        text = raw.strip()
        if text and (len(begun) < 2 or _FIELD.match(text)):
            begun.append((number, text))
        elif text:
            begun[-1] = (begun[-1][0], f"{begun[-1][1]} {text}")
    yield from begun


def _values(point: str, line: int, paragraphs: list[Paragraph]) -> dict[str, Paragraph]:
    """Return the paragraphs by the name of their field, in the agreed order and each at most once."""
    values: dict[str, Paragraph] = {}
    for at, text in paragraphs:
        name, _, value = text.partition(":")
        if not _FIELD.match(text) or name in values:
            raise ErratumSyntaxError(at, f"{point}: unexpected paragraph {text[:40]!r}")
        if not value.strip():
            raise ErratumSyntaxError(at, f"{point}: {name} is empty")
        values[name] = (at, value.strip())
    missing = [name for name in _FIELDS if name not in values and name != "Recomputed"]
    if missing:
        raise ErratumSyntaxError(line, f"{point}: {', '.join(missing)} is missing")
    if list(values) != [name for name in _FIELDS if name in values]:
        raise ErratumSyntaxError(
            line, f"{point}: {', '.join(values)} come in another order, expected {', '.join(_FIELDS)}"
        )
    return values


def _clauses(point: str, line: int, text: str) -> tuple[tuple[str, ...], str]:
    """Return the ids, or no ids and the reason."""
    if text.startswith("none: "):
        return (), text.removeprefix("none: ").strip().rstrip(".")
    ids = tuple(item.strip() for item in text.rstrip(".").split(","))
    wrong = [item for item in ids if not _CLAUSE_ID.match(item)]
    if wrong:
        raise ErratumSyntaxError(line, f"{point}: {wrong[0]!r} is no id of a clause; without one write 'none: reason'")
    if len(set(ids)) != len(ids):
        raise ErratumSyntaxError(line, f"{point}: a clause is named twice")
    return ids, ""


def _pairs(point: str, line: int, text: str) -> dict[str, Value]:
    """Return the values of "`name = value`, `name = value`" by name."""
    pairs: dict[str, Value] = {}
    for name, value in _PAIR.findall(text):
        if name in pairs:
            raise ErratumSyntaxError(line, f"{point}: {name!r} is given twice")
        pairs[name] = _value(point, line, name, value)
    if _PAIR.sub("", text).strip(" ,.") or (text and not pairs):
        raise ErratumSyntaxError(line, f"{point}: 'Recomputed' holds `name = value` pairs, not {text[:60]!r}")
    return pairs


def _value(point: str, line: int, name: str, text: str) -> Value:
    """Read a value as JSON, keeping a number's digits; NaN is a number too."""
    if len(text) > MAX_VALUE:
        raise ErratumSyntaxError(line, f"{point}: {name!r} has {len(text)} characters, at most {MAX_VALUE} are read")
    try:
        return _frozen(json.loads(text, parse_float=Decimal, parse_int=Decimal, parse_constant=Decimal))
    except (TypeError, ValueError):
        problem = f"{point}: {name!r} is no number, word in quotes or list of them: {text[:40]!r}"
        raise ErratumSyntaxError(line, problem) from None


def _frozen(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, (Decimal, str)):
        return value
    raise TypeError(type(value).__name__)
