"""A course's habits: who takes part, when they handed in, which attempt counts, and what a person adds by hand.

None of this is evidence: it turns the points of submissions into the grades of students.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, TypeVar

from conformkit.conformance.apps.grade.names import same
from conformkit.conformance.apps.grade.policy import CoursePolicy
from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.text import number

__all__ = [
    "Adjustment",
    "Course",
    "CourseError",
    "CourseGrade",
    "Late",
    "Student",
    "adjustments",
    "course_grades",
    "course_of",
    "owner_of",
    "roster",
    "submitted",
]  # fmt: skip

T = TypeVar("T")
_DAY = 86400.0
_ROSTER = ("id", "name")
_GRADEBOOK = ("student", "id", "sis user id", "sis login id", "section")
"""The columns of a gradebook that Canvas exports, which come before those of assignments."""
_SHORTEST_ID = 4
"""A shorter id says nothing in the middle of a name: in `anna_2` the 2 is an attempt."""


class CourseError(ValueError):
    """A file of the course cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Student:
    """One row of the roster."""

    id: str
    name: str
    email: str = ""
    section: str = ""
    canvas: str = ""
    """The number that Canvas knows the student by, if the roster is a gradebook of Canvas."""


@dataclass(frozen=True, slots=True)
class Adjustment:
    """Points that a person adds to or takes from a student or a submission, and why."""

    points: float
    comment: str


@dataclass(frozen=True, slots=True)
class Late:
    """What a late submission loses: `per_day` percent of its points for each day that has begun, at most `most`."""

    deadline: datetime
    per_day: float = 10.0
    most: float = 100.0
    grace_minutes: float = 0.0

    def percent(self, when: datetime) -> float:
        """Return the percentage that a submission at this time loses."""
        seconds = (when - self.deadline).total_seconds() - 60.0 * self.grace_minutes
        return min(self.most, self.per_day * math.ceil(seconds / _DAY)) if seconds > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Course:
    """What turns points of submissions into grades of students."""

    students: tuple[Student, ...]
    adjustments: Mapping[str, tuple[Adjustment, ...]] = field(default_factory=dict)
    """By id of a student or name of a submission."""
    submitted: Mapping[str, datetime] = field(default_factory=dict)
    """By name of a submission."""
    late: Late | None = None
    attempts: Literal["best", "last"] = "best"


@dataclass(frozen=True, slots=True)
class CourseGrade:
    """The grade of a student; `grade` is the submission that counts, None if nothing was handed in."""

    student: Student
    grade: Grade | None
    attempts: int
    late: float
    """Points that are lost because it is late."""
    adjusted: float
    points: float
    comments: tuple[str, ...] = ()


def course_of(policy: CoursePolicy) -> Course | None:
    """Return the course that a policy describes; None if it has no roster. Raises CourseError."""
    if not policy.roster:
        return None
    late = None
    if policy.deadline:
        if not policy.submitted:
            raise CourseError('the policy has a deadline and no table of times: name it with submitted = "…csv"')
        when = datetime.fromisoformat(policy.deadline)
        late = Late(when, policy.per_day, policy.most, policy.grace_minutes)
    return Course(
        students=roster(Path(policy.roster)),
        adjustments=adjustments(Path(policy.adjustments)) if policy.adjustments else {},
        submitted=submitted(Path(policy.submitted)) if policy.submitted else {},
        late=late, attempts=policy.attempts,
    )  # fmt: skip


# --- reading ----------------------------------------------------------------------------------------------------------


def roster(path: Path) -> tuple[Student, ...]:
    """Read a CSV with the columns id and name, and email and section if there are any, or a gradebook of Canvas.

    Raises: CourseError.
    """
    rows = _rows(path, _ROSTER, _student, instead=_GRADEBOOK)
    found = [student for student in rows if student is not None]
    ids = [same(student.id) for student in found]
    twice = next((student.id for n, student in enumerate(found) if ids[n] in ids[:n]), None)
    if twice is not None:
        raise CourseError(f"{path} lists {twice} twice")
    return tuple(found)


def adjustments(path: Path) -> dict[str, tuple[Adjustment, ...]]:
    """Read a CSV with the columns who, points and comment. Raises CourseError."""
    found: dict[str, tuple[Adjustment, ...]] = {}
    for who, one in _rows(path, ("who", "points", "comment"), _adjustment):
        found[who] = (*found.get(who, ()), one)
    return found


def submitted(path: Path) -> dict[str, datetime]:
    """Read a CSV with the columns submission and time, as 2026-11-23T18:00+01:00. Raises CourseError."""
    return dict(_rows(path, ("submission", "time"), lambda row: (_filled(row, "submission"), _time(row["time"]))))


def _student(row: Mapping[str, str]) -> Student | None:
    """Return the student of a row; None for rows of a gradebook about assignments, such as the possible points."""
    if set(_ROSTER) <= set(row):
        return Student(_filled(row, "id"), row["name"], row.get("email", ""), row.get("section", ""))
    if not row["id"]:
        return None
    own = row["sis user id"] or row["sis login id"] or row["id"]
    return Student(own, row["student"], row["sis login id"], row["section"], row["id"])


def _filled(row: Mapping[str, str], key: str) -> str:
    if not row[key]:
        raise ValueError(f"{key} is empty")
    return row[key]


def _adjustment(row: Mapping[str, str]) -> tuple[str, Adjustment]:
    who = _filled(row, "who")
    points = float(row["points"])
    if not math.isfinite(points):
        raise ValueError(f"{row['points']} is no number of points")
    if not row["comment"]:
        raise ValueError("a change by hand needs a comment")
    return who, Adjustment(points, row["comment"])


def _time(text: str) -> datetime:
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        raise ValueError(f"{text} has no time zone; write it as 2026-11-23T18:00+01:00")
    return when


def _rows(
    path: Path, needed: Sequence[str], read: Callable[[Mapping[str, str]], T], *, instead: Sequence[str] = ()
) -> list[T]:
    """Read a table with all columns of `needed`, or all of `instead`, whatever the case of their names."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            table = csv.DictReader(stream)
            names = {(name or "").strip().lower(): name for name in table.fieldnames or ()}
            lacking = [name for name in needed if name not in names]
            if lacking and not (instead and set(instead) <= set(names)):
                raise CourseError(
                    f"{path} has no column {lacking[0]}; its first line names the columns: {', '.join(needed)}"
                )
            return [
                _row(path, line, {name: (row.get(own) or "").strip() for name, own in names.items()}, read)
                for line, row in enumerate(table, start=2)
            ]
    except UnicodeDecodeError:
        raise CourseError(f"{path} is not text in UTF-8; export it as CSV in UTF-8") from None
    except (OSError, csv.Error) as error:
        raise CourseError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _row(path: Path, line: int, row: Mapping[str, str], read: Callable[[Mapping[str, str]], T]) -> T:
    try:
        return read(row)
    except ValueError as error:
        raise CourseError(f"{path}, line {line}: {error}") from None


# --- grades -----------------------------------------------------------------------------------------------------------


def course_grades(course: Course, grades: Sequence[Grade]) -> tuple[list[CourseGrade], list[str]]:
    """Return the grade of each student, in the order of the roster, and the submissions that are nobody's.

    A submission belongs to the student whose id, e-mail address, part of it before the @, or name is its name, with or
    without something behind it: `anna`, `anna-2`, `anna_late`, `berganna_40037_90112_hw3` from Canvas. An id that is a
    part of a name goes before that: platforms put it there, `hw3_s4711_attempt_1`, and names of people can be alike.
    """
    owned: dict[str, list[Grade]] = {}
    strangers: list[str] = []
    for grade in grades:
        owner = owner_of(grade.submission.name, course.students)
        if owner is None:
            strangers.append(grade.submission.name)
        else:
            owned.setdefault(owner.id, []).append(grade)
    return [_of_student(course, student, owned.get(student.id, [])) for student in course.students], strangers


def owner_of(name: str, students: Sequence[Student]) -> Student | None:
    """Return the student whose id is a part of the name, or else whose name fits longest, if it is only one."""
    parts = same(name).split("_")[1:]
    named = [student for student in students if any(number in parts for number in _numbers(student))]
    if named:
        return named[0] if len(named) == 1 else None
    found: dict[int, list[Student]] = {}
    for student in students:
        fitting = [len(key) for key in _keys(student) if _begins(same(name), key)]
        if fitting:
            found.setdefault(max(fitting), []).append(student)
    best = found[max(found)] if found else []
    return best[0] if len(best) == 1 else None


def _numbers(student: Student) -> list[str]:
    ids = [same(key) for key in (student.id, student.canvas)]
    return [key for key in ids if len(key) >= _SHORTEST_ID and any(map(str.isdigit, key))]


def _keys(student: Student) -> list[str]:
    named = [student.id, student.email, student.email.partition("@")[0], student.name, student.name.replace(" ", "_")]
    words = re.findall(r"\w+", student.name)
    joined = ["".join(words), "".join([*words[-1:], *words[:-1]])] if len(words) > 1 else []
    return [same(key) for key in (*named, *joined) if key]


def _begins(name: str, key: str) -> bool:
    return name == key or (name.startswith(key) and not name[len(key)].isalnum())


def _of_student(course: Course, student: Student, attempts: Sequence[Grade]) -> CourseGrade:
    each = [_counted(course, student, grade) for grade in attempts]
    if not each:
        return _counted(course, student, None)
    if course.attempts == "last":
        chosen = max(range(len(each)), key=lambda n: _order(course, attempts[n]))
    else:
        chosen = max(range(len(each)), key=lambda n: each[n].points)
    found = each[chosen]
    return CourseGrade(student, found.grade, len(each), found.late, found.adjusted, found.points, found.comments)


def _order(course: Course, grade: Grade) -> tuple[float, str]:
    """Return when an attempt was handed in, and its name for those whose time is unknown."""
    when = course.submitted.get(grade.submission.name)
    return (when.timestamp() if when else 0.0, grade.submission.name)


def _counted(course: Course, student: Student, grade: Grade | None) -> CourseGrade:
    points, comments, late = 0.0, [], 0.0
    names = [student.id]
    if grade is not None:
        points, names = grade.points, [student.id, grade.submission.name]
        when = course.submitted.get(grade.submission.name)
        percent = course.late.percent(when) if course.late is not None and when is not None else 0.0
        late = points * percent / 100
        comments += [f"late: {number(percent)} percent of {number(points)} points"] if percent else []
    found = [one for name in dict.fromkeys(names) for one in course.adjustments.get(name, ())]
    adjusted = sum(one.points for one in found)
    comments += [f"{one.points:+g} points: {one.comment}" for one in found]
    return CourseGrade(student, grade, int(grade is not None), late, adjusted, max(0.0, points - late + adjusted),
                       tuple(comments))  # fmt: skip
