"""The student's feedback: the points, and the report of the run. Advice about libraries is for the instructor."""

from __future__ import annotations

from conformkit.conformance.apps.grade.outputs import wording
from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.markdown import body, code, escape
from conformkit.conformance.report.pages import page

__all__ = ["as_html", "as_markdown"]

TEMPLATES = "conformkit.conformance.apps.grade.outputs.templates"


def as_html(grade: Grade, report: Report | None, title: str = "") -> str:
    """Return a page of one file; `report` is the parsed report of the grade, `title` the policy's."""
    return page("grade.html", TEMPLATES, grade=grade, report=report, title=title, told=wording)


def as_markdown(grade: Grade, report: Report | None, title: str = "") -> str:
    """Return the same as Markdown."""
    parts = [
        f"# {code(grade.submission.name)}",
        escape(title),
        f"**{wording.points_line(grade.points, grade.max_points)}**",
    ]
    outcome = wording.outcome_line(grade)
    parts += [code(outcome), escape(wording.next_line(grade))] if outcome else []
    parts += [escape(wording.required_line(grade.required, "the whole submission"))]
    parts += [_groups(grade)]
    parts += ["\n".join(f"- {code(note)}" for note in grade.notes)]
    parts += [body(report)] if report is not None else []
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _groups(grade: Grade) -> str:
    rows = [
        f"- {escape(group.title or group.name)}: {wording.points_line(group.points, group.max_points)} "
        f"({escape(wording.group_line(group))})"
        for group in grade.groups
    ]
    return "\n".join(["## Points\n", *rows]) if rows else ""
