"""The log of one submission, for a person who asks what happened to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.apps.grade.record import Grade
from conformkit.conformance.text import number

__all__ = ["log"]


def log(grade: Grade) -> str:
    """Return the log of a graded submission, verdict by verdict."""
    who = grade.submission
    lines = [f"{who.name} ({who.source}, sha256 {who.digest})", f"{grade.outcome}: {grade.message or 'see below'}"]
    lines += [f"{number(grade.points)} of {number(grade.max_points)} points, {grade.seconds:.1f} s", ""]
    lines += [f"note: {note}" for note in grade.notes]
    lines += [f"advice: {item.kind} of {item.what} at {item.where}" for item in grade.advice]
    report: Mapping[str, Any] = grade.report or {}
    lines += [f"binding: {note}" for note in report.get("notes", ())]
    for item in report.get("clauses", ()):
        lines.append(f"{item['verdict']:15} {item['id']}: {item['message'] or item['reason'] or item['title']}")
        lines += [f"{'':15} where: {item['where']}"] if item["where"] else []
        lines += [f"{'':15} printed: {line}" for line in item["output"].splitlines()]
    return "\n".join(lines) + "\n"
