"""The outputs of grading, all made from the grades alone.

grades.csv                  one row per submission, for spreadsheets and gradebooks
changes.csv                 what each run after the first changed
similar.csv                 submissions that are the same, or share functions that few others have
course/                     the grades of students, and the forms of Canvas, Moodle and Blackboard
overview.html               the class: scores, clauses that fail most, most common mistakes
junit.xml                   one suite per submission, one case per group
students/ID/report.html     for the student; report.md is the same as Markdown
students/ID/appeals/        a page for each group with lost points: evidence, and how to repeat it
students/ID/results.json    for Gradescope
students/ID/grade.json      everything, including advice: for the instructor
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from conformkit.conformance.apps.grade.course import Course, course_grades
from conformkit.conformance.apps.grade.outputs import appeal
from conformkit.conformance.apps.grade.outputs.changes import as_changes, points_in
from conformkit.conformance.apps.grade.outputs.gradebooks import as_blackboard, as_canvas, as_course, as_moodle
from conformkit.conformance.apps.grade.outputs.gradescope import as_results
from conformkit.conformance.apps.grade.outputs.junit import as_junit
from conformkit.conformance.apps.grade.outputs.overview import as_overview
from conformkit.conformance.apps.grade.outputs.similar import as_similar
from conformkit.conformance.apps.grade.outputs.student import as_html, as_markdown
from conformkit.conformance.apps.grade.outputs.table import as_csv
from conformkit.conformance.apps.grade.outputs.wording import report_of
from conformkit.conformance.apps.grade.policy import Policy
from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.report.files import write

__all__ = ["COURSE", "STUDENTS", "write_all", "write_course", "write_student"]

STUDENTS = "students"
APPEALS = "appeals"

COURSE = "course"
_DEFAULTS = Policy()


def write_all(
    out: Path, grades: Sequence[Grade], policy: Policy = _DEFAULTS, course: Course | None = None
) -> tuple[str, ...]:
    """Write every output of a run; each file is replaced in one step. Raises OSError, NotAReport.

    Returns the submissions that belong to nobody on the roster.
    """
    before = points_in(out / "grades.csv")
    light: list[Grade] = []  # without the reports, which do not fit into memory together
    for grade in grades:
        write_student(out / STUDENTS / grade.submission.id, grade, policy.title)
        light.append(replace(grade, report=None))
    write(out / "grades.csv", as_csv(grades))
    if before is not None:
        write(out / "changes.csv", as_changes(before, grades, out / "changes.csv"))
    write(out / "junit.xml", as_junit(grades, policy.title))
    write(out / "overview.html", as_overview(grades, policy.title))
    write(out / "similar.csv", as_similar(light))
    return write_course(out / COURSE, light, policy, course) if course is not None else ()


def write_course(folder: Path, grades: Sequence[Grade], policy: Policy, course: Course) -> tuple[str, ...]:
    """Write the grades of students, and what by hand was added to them; return submissions that are nobody's."""
    found, strangers = course_grades(course, grades)
    title, most = policy.title or "conformkit", policy.max_points
    folder.mkdir(exist_ok=True)
    write(folder / "grades.csv", as_course(found, most))
    write(folder / "canvas.csv", as_canvas(found, title, most))
    write(folder / "moodle.csv", as_moodle(found, title))
    write(folder / "blackboard.csv", as_blackboard(found, title, most))
    if policy.course.adjustments:
        write(folder / "adjustments.csv", Path(policy.course.adjustments).read_text(encoding="utf-8-sig"))
    return tuple(strangers)


def write_student(folder: Path, grade: Grade, title: str = "") -> None:
    """Write the files of one submission."""
    report = report_of(grade)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "report.html", as_html(grade, report, title))
    write(folder / "report.md", as_markdown(grade, report, title))
    write(folder / "results.json", as_results(grade, report, title))
    write(folder / "grade.json", grade.as_json() + "\n")
    _write_appeals(folder / APPEALS, list(appeal.appeals(grade, report)), title)


def _write_appeals(folder: Path, found: Sequence[appeal.Appeal], title: str) -> None:
    """Write the pages of groups with lost points, and remove those of groups that lose none any more."""
    names = {one.group.name for one in found}
    for old in folder.glob("*.*") if folder.is_dir() else ():
        if old.suffix in {".html", ".md"} and old.stem not in names:
            old.unlink()
    if found:
        folder.mkdir(exist_ok=True)
    for one in found:
        write(folder / f"{one.group.name}.html", appeal.as_html(one, title))
        write(folder / f"{one.group.name}.md", appeal.as_markdown(one, title))
