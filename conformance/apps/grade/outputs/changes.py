"""What runs changed, one after the other: the scores before and after, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from conformkit.conformance.apps.grade.outputs.table import cell
from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.text import number, rounded

__all__ = ["as_changes", "points_in"]

_HEAD = ("time", "id", "name", "before", "after", "difference")


def points_in(table: Path) -> dict[str, float] | None:
    """Return the points by id in an earlier grades.csv; None if there is none that can be read."""
    try:
        with table.open(newline="", encoding="utf-8") as stream:
            return {row["id"]: float(row["points"]) for row in csv.DictReader(stream)}
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        return None


def as_changes(before: Mapping[str, float], grades: Sequence[Grade], earlier: Path) -> str:
    """Return what earlier runs changed, and a row for each submission whose points are others now, new, or gone."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerows([_HEAD, *_rows_in(earlier)])
    now = datetime.now(UTC).isoformat(" ", "seconds")
    for grade in grades:
        old, new = before.get(cell(grade.submission.id)), rounded(grade.points)
        if old is None or abs(old - new) > 1e-9:  # both are written with two decimals
            lines = ["", number(new), ""] if old is None else [number(old), number(new), number(new - old)]
            writer.writerow([now, cell(grade.submission.id), cell(grade.submission.name), *lines])
    known = {cell(grade.submission.id) for grade in grades}
    writer.writerows([now, name, "", number(old), "", ""] for name, old in before.items() if name not in known)
    return stream.getvalue()


def _rows_in(table: Path) -> list[list[str]]:
    """Return what a table says, without its head; nothing if there is none, or it is another one's."""
    try:
        with table.open(newline="", encoding="utf-8") as stream:
            head, *rows = csv.reader(stream)
    except (OSError, ValueError, csv.Error):
        return []
    return rows if tuple(head) == _HEAD else []
