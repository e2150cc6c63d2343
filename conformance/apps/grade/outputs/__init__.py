"""The outputs of grading, all made from the grades alone.

grades.csv                  one row per submission, for spreadsheets and gradebooks
overview.html               the class: scores, clauses that fail most, most common mistakes
junit.xml                   one suite per submission, one case per group
students/ID/report.html     for the student; report.md is the same as Markdown
students/ID/results.json    for Gradescope
students/ID/grade.json      everything, including advice: for the instructor
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from conformkit.conformance.apps.grade.outputs.gradescope import as_results
from conformkit.conformance.apps.grade.outputs.junit import as_junit
from conformkit.conformance.apps.grade.outputs.overview import as_overview
from conformkit.conformance.apps.grade.outputs.student import as_html, as_markdown
from conformkit.conformance.apps.grade.outputs.table import as_csv
from conformkit.conformance.apps.grade.outputs.wording import report_of
from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.report.files import write

__all__ = ["STUDENTS", "write_all", "write_student"]

STUDENTS = "students"


def write_all(out: Path, grades: Sequence[Grade]) -> None:
    """Write every output of a run; each file is replaced in one step. Raises OSError, NotAReport."""
    for grade in grades:
        write_student(out / STUDENTS / grade.submission.id, grade)
    write(out / "grades.csv", as_csv(grades))
    write(out / "junit.xml", as_junit(grades))
    write(out / "overview.html", as_overview(grades))


def write_student(folder: Path, grade: Grade) -> None:
    """Write the files of one submission."""
    report = report_of(grade)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "report.html", as_html(grade, report))
    write(folder / "report.md", as_markdown(grade, report))
    write(folder / "results.json", as_results(grade, report))
    write(folder / "grade.json", grade.as_json() + "\n")
