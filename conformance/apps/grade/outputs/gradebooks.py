"""The grades of students as tables: one for people, and those that Canvas, Moodle and Blackboard import."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from conformkit.conformance.apps.grade.course import CourseGrade
from conformkit.conformance.apps.grade.outputs.table import cell
from conformkit.conformance.text import number

__all__ = ["as_blackboard", "as_canvas", "as_course", "as_moodle"]

_COLUMNS = (
    "id", "name", "email", "section", "points", "max_points", "submission", "attempts", "judged", "late", "adjusted",
    "comment",
)  # fmt: skip


def as_course(grades: Sequence[CourseGrade], most: float) -> str:
    """Return a row for each student, with what is behind the points."""
    return _table(_COLUMNS, ([*_who(one), number(one.points), number(most), *_how(one)] for one in grades))


def as_canvas(grades: Sequence[CourseGrade], title: str, most: float) -> str:
    """Return the form of Canvas: names, its own numbers if they are known, ids, sections, a row of possible points."""
    head = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section", title)
    rows = ([one.student.name, one.student.canvas, "" if one.student.id == one.student.canvas else one.student.id,
             one.student.email, one.student.section, _points(one)] for one in grades)  # fmt: skip
    return _table(head, [["    Points Possible", "", "", "", "", number(most)], *rows])


def as_moodle(grades: Sequence[CourseGrade], title: str) -> str:
    """Return what Moodle's import reads: it maps users by ID number or e-mail address."""
    head = ("ID number", "Email address", title, f"{title} (feedback)")
    return _table(head, ([one.student.id, one.student.email, _points(one), _comment(one)] for one in grades))


def as_blackboard(grades: Sequence[CourseGrade], title: str, most: float) -> str:
    """Return what Blackboard's grade center uploads."""
    head = ("Username", f"{title} [Total Pts: {number(most)} Score]")
    return _table(head, ([one.student.id, _points(one)] for one in grades))


def _who(one: CourseGrade) -> list[str]:
    return [one.student.id, one.student.name, one.student.email, one.student.section]


def _how(one: CourseGrade) -> list[str]:
    if one.grade is None:
        return ["", "0", "", "", number(one.adjusted), _comment(one) or "nothing handed in"]
    own = one.grade.submission.name
    return [own, str(one.attempts), number(one.grade.points), number(one.late), number(one.adjusted), _comment(one)]


def _points(one: CourseGrade) -> str:
    return number(one.points)


def _comment(one: CourseGrade) -> str:
    return "; ".join(one.comments)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    stream = io.StringIO(newline="")
    writer = csv.writer(stream)
    writer.writerow([cell(name) for name in head])
    writer.writerows([text if _numeric(text) else _kept(text) for text in row] for row in rows)
    return stream.getvalue()


def _kept(text: str) -> str:
    """Return a cell; Canvas knows its row of possible points by four blanks."""
    return text if text == "    Points Possible" else cell(text)


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
