"""What a run changed: the scores before and after, as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformkit.conformance.apps.grade.outputs.table import cell
from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.text import number, rounded

__all__ = ["as_changes", "points_in"]


def points_in(table: Path) -> dict[str, float] | None:
    """Return the points by id in an earlier grades.csv; None if there is none that can be read."""
    try:
        with table.open(newline="", encoding="utf-8") as stream:
            return {row["id"]: float(row["points"]) for row in csv.DictReader(stream)}
    except (OSError, KeyError, TypeError, ValueError, csv.Error):
        return None


def as_changes(before: Mapping[str, float], grades: Sequence[Grade]) -> str:
    """Return a row for each submission whose points are others than before, new, or no longer there."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow(["id", "name", "before", "after", "difference"])
    for grade in grades:
        old, new = before.get(cell(grade.submission.id)), rounded(grade.points)
        if old is None or abs(old - new) > 1e-9:  # both are written with two decimals
            told = ["", number(new), ""] if old is None else [number(old), number(new), number(new - old)]
            writer.writerow([cell(grade.submission.id), cell(grade.submission.name), *told])
    known = {cell(grade.submission.id) for grade in grades}
    writer.writerows([name, "", number(old), "", ""] for name, old in before.items() if name not in known)
    return stream.getvalue()
