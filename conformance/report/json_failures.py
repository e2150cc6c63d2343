"""The failures of a run alone as JSON, for editors and scripts, as described by failures.schema.json."""

from __future__ import annotations

from typing import Any

from conformkit.conformance.engine.results import Report, Result
from conformkit.conformance.report.causes import advice, briefly, same_cause
from conformkit.conformance.report.json_finding import finding_object
from conformkit.conformance.report.json_report import as_object, likeness_object
from conformkit.conformance.report.json_text import json_text, packaged_schema
from conformkit.conformance.report.places import somewhere
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.wording import command, failures, verdict_line
from conformkit.conformance.text import plain
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["SCHEMA", "as_json_failures", "failure_objects", "schema"]

SCHEMA = "conformkit.failures/1"
"""Name and version of the format. New fields keep the number; changing or removing a field raises it."""


def as_json_failures(report: Report) -> str:
    """Return the red clauses of a report as JSON text, binding ones first: what is wrong, where, and how to fix it."""
    report = from_object(as_object(report))
    return json_text(
        {
            "schema": SCHEMA,
            "kit": kit_version(),
            "spec": SPEC_VERSION,
            "implementation": plain(report.implementation),
            "profile": report.profile,
            "complete": report.complete,
            "conforms": report.conforms,
            "verdict": plain(verdict_line(report)),
            "failures": failure_objects(report),
        }
    )


def failure_objects(report: Report) -> list[dict[str, Any]]:
    """Return the red clauses of a report as objects of such a file, binding ones first."""
    red = failures(report)
    shared = same_cause(report, red)
    return [_failure(report, result, shared.get(result.clause.id, "")) for result in red]


def schema() -> dict[str, Any]:
    """Return the JSON Schema that such a file satisfies."""
    return packaged_schema(__package__, "failures")


def _failure(report: Report, result: Result, same_as: str) -> dict[str, Any]:
    file, line = somewhere(report, result)
    return {
        "id": result.clause.id, "rule": result.clause.title, "level": result.clause.level.value,
        "component": result.clause.component, "verdict": result.verdict.value, "breaks": report.breaks(result),
        "what": plain(briefly(report, result)),
        "finding": finding_object(result.finding),
        "names": [likeness_object(like, report.hints) for like in result.looks_like],
        "same_cause_as": same_as,
        "file": plain(file), "line": line,
        "fix": plain(next((text for label, text in advice(result, report.hints) if label == "fix:"), "")),
        "again": plain(command(report, result.clause.id)),
    }  # fmt: skip
