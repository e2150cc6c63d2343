"""A report as JSON, as described by report.schema.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from conformkit.conformance.assertions.excerpts import Excerpt
from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.results import LooksLike, Report, Result, Undeclared
from conformkit.conformance.report.baseline import as_object as baseline_object
from conformkit.conformance.report.json_finding import finding_object
from conformkit.conformance.report.json_text import json_text, packaged_schema
from conformkit.conformance.report.milestones import Milestone, milestones, next_step
from conformkit.conformance.report.wording import in_order, next_line, undeclared_line
from conformkit.conformance.text import plain
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["SCHEMA", "as_json", "as_object", "likeness_object", "schema"]

SCHEMA = "conformkit.report/1"
"""Name and version of the format. New fields keep the number; changing or removing a field raises it."""


def as_json(report: Report) -> str:
    """Return the report as JSON text: the same results give the same bytes, except for the seconds."""
    return json_text(as_object(report))


def as_object(report: Report) -> dict[str, Any]:
    """Return the report as plain dictionaries and lists."""
    return {
        "schema": SCHEMA,
        "kit": kit_version(),
        "spec": SPEC_VERSION,
        "implementation": {
            "name": plain(report.implementation),
            "location": plain(report.location),
            "framework": plain(report.framework),
        },
        "profile": report.profile,
        "level": report.level.value,
        "hints": report.hints,
        "only": list(report.only),
        **({"without": list(report.without)} if report.without else {}),
        **({"live": True} if report.live else {}),
        "variant": _constants(report.variant),
        "declared": {
            "excuses": [_excuse(found) for found in report.excuses],
            "judged": report.coverage()[0],
            "binding": report.coverage()[1],
            "exempted": [result.clause.id for result in report.exempted()],
        },
        "strict": report.strict,
        "isolation": report.isolation,
        "device": report.device,
        "dtype": report.dtype,
        "seed": None if report.hidden else report.seed,
        "drawn": report.drawn,
        "date": plain(report.date),
        "hidden": report.hidden,
        "pages": plain(report.pages),
        "complete": report.complete,
        "late": plain(report.late),
        "conforms": report.conforms,
        "ledger": report.ledger(),
        "sizes": {
            name: {size: list(ends) for size, ends in ranges.items()} for name, ranges in report.extents().items()
        },
        "missing": [plain(name) for name in report.missing],
        "unusable": [
            {
                "name": plain(name),
                "problem": plain(why.problem),
                "where": plain(why.where),
                "advice": [plain(line) for line in why.advice],
            }
            for name, why in report.unusable.items()
        ],
        "sources": {name: plain(where) for name, where in report.sources.items()},
        "skipped": list(report.skipped),
        "found": {name: plain(path) for name, path in report.found.items()},
        **({"accounted": True} if report.accounted else {}),
        "stubs": [{"name": name, "where": plain(where)} for name, where in report.stubs.items()],
        "notes": [plain(note) for note in report.notes],
        "undeclared": [_undeclared(found) for found in report.undeclared],
        "milestones": [_milestone(found) for found in milestones(report)],
        "next": _next(report),
        **({"baseline": baseline_object(report)} if report.known is not None else {}),
        "seconds": _finite(report.seconds, 3) or 0.0,
        "parts": [
            {"component": name, "path": part.path, "message": plain(part.sentence)}
            for name, part in report.parts.items()
            if report.hints > 1
        ],
        "clauses": [_clause(report, result) for result in in_order(report)],
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema that every report satisfies."""
    return packaged_schema(__package__, "report")


def _excuse(found: Excuse) -> dict[str, Any]:
    return {
        "kind": found.kind, "key": plain(found.key), "component": found.component, "words": plain(found.words),
        "arithmetic": found.arithmetic,
    }  # fmt: skip


def _milestone(found: Milestone) -> dict[str, Any]:
    return {
        "name": found.name, "state": found.state.value, "clauses": len(found.results), "passed": found.passed,
        "lacking": [plain(name) for name in found.lacking],
    }  # fmt: skip


def _next(report: Report) -> dict[str, str] | None:
    step = next_step(report)
    return {"milestone": step.milestone, "message": next_line(step), "only": step.only} if step else None


def _undeclared(found: Undeclared) -> dict[str, Any]:
    return {
        "component": found.component,
        "choice": found.choice,
        "declared": _constant(found.declared),
        "actual": _constant(found.actual),
        "table": found.table,
        "line": found.line,
        "message": undeclared_line(found),
    }


def _clause(report: Report, result: Result) -> dict[str, Any]:
    clause = result.clause
    return {
        "id": clause.id,
        "title": clause.title,
        "level": clause.level.value,
        "component": clause.component,
        "verdict": result.verdict.value,
        "breaks": report.breaks(result),
        "message": plain(result.message),
        "details": [plain(line) for line in result.details],
        "finding": finding_object(result.finding),
        "distance": _finite(result.distance),
        "threshold": "" if report.hidden else plain(result.threshold),
        "needs": list(clause.needs),
        "blocked_by": result.blocked_by,
        "reason": plain(result.reason),
        "exempted_by": plain(result.exempted_by),
        "unfinished": result.unfinished,
        "where": plain(result.where),
        "output": plain(result.output, 8000),
        "excerpt": _excerpt(result.excerpt),
        "looks_like": [likeness_object(like, report.hints) for like in result.looks_like],
        "seconds": _finite(result.seconds, 6) or 0.0,
    }


def _excerpt(shown: Excerpt | None) -> dict[str, Any] | None:
    if shown is None:
        return None
    return {
        "got": [[_finite(value) for value in row] for row in shown.got],
        "want": [[_finite(value) for value in row] for row in shown.want],
        "allowed": _finite(shown.allowed), "shape": list(shown.shape), "at": list(shown.at), "first": list(shown.first),
        "hidden": [list(row) for row in shown.hidden] or None,
    }  # fmt: skip


def likeness_object(like: LooksLike, hints: int) -> dict[str, Any]:
    """Return as much about a known mistake as the hints allow."""
    steps = [like.hint.symptom, like.hint.area, like.hint.mistake]
    told: dict[str, Any] = {"certainty": like.certainty.value, "hint": steps[:hints]}
    if hints >= len(steps):
        told |= {"defect": like.defect, "title": like.title, "together_with": list(like.together_with)}
    return told


def _finite(value: float | None, digits: int | None = None) -> float | None:
    """JSON knows no infinity and no NaN: null stands for them."""
    if value is None or not math.isfinite(value):
        return None
    return float(value) if digits is None else round(float(value), digits)


def _constants(values: Mapping[str, Any]) -> dict[str, Any]:
    return {plain(str(name)): _constant(value) for name, value in sorted(values.items())}


def _constant(value: object) -> object:
    if isinstance(value, float):
        return _finite(value)
    return value if value is None or isinstance(value, bool | int) else plain(str(value))
