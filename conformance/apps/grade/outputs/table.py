"""The class as CSV. What a spreadsheet would read as a formula gets a leading apostrophe and becomes text.

Some spreadsheets split at semicolons, whatever is quoted between commas, so each part between those is looked at.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.text import number, one_line

__all__ = ["as_csv", "cell"]

_FIRST = ("id", "name", "points", "max_points", "outcome")
_LAST = ("clauses", "passed", "required_failed", "to_look_at", "source", "digest", "message")
_FORMULA = frozenset("=+-@\t\r＝＋－＠")
"""Some spreadsheets read a cell with this start as a formula."""


def as_csv(grades: Sequence[Grade]) -> str:
    """Return a header and one row per submission, in their order; RFC 4180, UTF-8."""
    names = list(dict.fromkeys(group.name for grade in grades for group in grade.groups))
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([*_FIRST, *(cell(f"points.{name}") for name in names), *_LAST])
    writer.writerows(_row(grade, names) for grade in grades)
    return stream.getvalue()


def cell(text: str) -> str:
    """Return a text on one line that no spreadsheet evaluates."""
    return ";".join(_not_evaluated(part) for part in one_line(text, 2000).split(";"))


def _not_evaluated(part: str) -> str:
    """Return a part whose first sign, behind blanks and quotes, begins no formula."""
    return f"'{part}" if part.lstrip(" '\"")[:1] in _FORMULA and part.strip() else part


def _row(grade: Grade, names: Sequence[str]) -> list[str]:
    points = {group.name: number(group.points) for group in grade.groups}
    failed = [*grade.required, *(name for group in grade.groups for name in group.required)]
    texts = [
        str(sum(group.clauses for group in grade.groups)), str(sum(group.passed for group in grade.groups)),
        " ".join(dict.fromkeys(failed)), str(len(grade.advice)), grade.submission.source, grade.submission.digest,
        grade.message,
    ]  # fmt: skip
    return [
        cell(grade.submission.id), cell(grade.submission.name), number(grade.points), number(grade.max_points),
        grade.outcome.value, *(points.get(name, "") for name in names), *map(cell, texts),
    ]  # fmt: skip
