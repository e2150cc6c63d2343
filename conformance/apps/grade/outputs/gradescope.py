"""results.json for Gradescope: one test per group of the policy, everything as plain text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conformkit.conformance.apps.grade.outputs.wording import group_line, next_line, outcome_line, required_line
from conformkit.conformance.apps.grade.record import Grade, Group
from conformkit.conformance.engine.results import Report, Result
from conformkit.conformance.report.causes import labelled
from conformkit.conformance.report.json_text import json_text
from conformkit.conformance.report.wording import HIDDEN, command, verdict_line
from conformkit.conformance.text import count, listed, one_line, plain, rounded
from conformkit.conformance.versions import kit_version

__all__ = ["as_results"]

_LONGEST = 20_000
"""Maximum length of one test's text; Gradescope would show pages of it."""


def as_results(grade: Grade, report: Report | None, title: str = "") -> str:
    """Return the file's text; `report` is the grade's parsed report. Parts for the instructor only are `hidden`."""
    tests = [_group(number, group, report) for number, group in enumerate(grade.groups, start=1)]
    results = {
        "score": rounded(grade.points),
        "execution_time": round(grade.seconds, 3),
        "output": _head(grade, report, title),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "kit": kit_version(), "outcome": grade.outcome.value, "digest": grade.submission.digest,
        },
        "tests": [*tests, *([_advice(grade)] if grade.advice else [])],
    }  # fmt: skip
    return json_text(results)


def _head(grade: Grade, report: Report | None, title: str) -> str:
    lines = [title, outcome_line(grade), next_line(grade), required_line(grade.required, "the whole submission")]
    lines += [verdict_line(report)] if report is not None else []
    lines += [HIDDEN.capitalize() + "."] if grade.hidden and report is not None else []
    return plain("\n".join(line for line in [*lines, *grade.notes] if line), _LONGEST)


def _group(number: int, group: Group, report: Report | None) -> dict[str, Any]:
    lines = [group_line(group) + "."]
    if report is not None:
        by_id = {result.clause.id: result for result in report.results}
        found = [by_id[name] for name in group.failed if name in by_id]
        lines += [_clause(report, result) for result in found if result.verdict.red]
        lines += _in_groups([result for result in found if not result.verdict.red])
    return {
        "number": str(number),
        "name": one_line(group.title or group.name, 200),
        "score": rounded(group.points),
        "max_score": rounded(group.max_points),
        "status": "failed" if group.failed or group.required else "passed",
        "output": plain("\n\n".join(lines), _LONGEST),
        "output_format": "text",
        "visibility": "visible",
    }


def _in_groups(results: Sequence[Result]) -> Iterator[str]:
    """Yield a line for all clauses that were not judged for the same reason: 32 stubs are one thing to do."""
    ids: dict[tuple[str, str], list[str]] = {}
    for result in results:
        why = result.reason or (f"not checked until {result.blocked_by} passes" if result.blocked_by else "")
        ids.setdefault((result.verdict.value, why), []).append(result.clause.id)
    for (verdict, why), names in ids.items():
        yield f"{count(len(names), 'clause')} {verdict}{f': {why}' if why else ''} ({listed(names)})"


def _clause(report: Report, result: Result) -> str:
    clause = result.clause
    lines = [f"{result.verdict.upper()} {clause.id}: {clause.title}"]
    lines += [f"     {line}" for line in (result.message, *result.details) if line]
    lines += [f"     {label:<12}{fact}" for label, fact in labelled(report, result)]
    return "\n".join([*lines, f"     {'again:':<12}{command(report, clause.id)}"])


def _advice(grade: Grade) -> dict[str, Any]:
    lines = [f"{one_line(item.kind)} of {one_line(item.what)} at {one_line(item.where)}" for item in grade.libraries]
    lines += [f"declared: {one_line(item.what)} ({one_line(item.where)})" for item in grade.declarations]
    return {
        "name": "Needs a look: forbidden libraries, and declarations that could hide a mistake",
        "output": plain("\n".join(["Points are unchanged.", *lines]), _LONGEST),
        "output_format": "text",
        "visibility": "hidden",
    }
