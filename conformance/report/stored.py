"""A JSON report, read back: a stored report can be rendered later in every other format."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from conformkit.conformance.assertions.excerpts import Excerpt
from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.hint import Hint
from conformkit.conformance.engine.results import (
    Certainty,
    DifferingPart,
    LooksLike,
    Report,
    Result,
    Undeclared,
    Verdict,
)
from conformkit.conformance.report.json_finding import finding_from
from conformkit.conformance.report.json_report import SCHEMA
from conformkit.spec.clauses import Clause, Level, clauses

__all__ = ["NotAReport", "from_object"]


class NotAReport(ValueError):
    """The object is not a report in a format that this version knows."""


def from_object(found: Mapping[str, Any]) -> Report:
    """Return the report that a published JSON object holds; clause texts come from the installed law.

    Raises: NotAReport.
    """
    if found.get("schema") != SCHEMA:
        raise NotAReport(f"its schema is {found.get('schema')!r}, expected {SCHEMA!r}")
    try:
        return _report(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise NotAReport(f"it is not a report of schema {SCHEMA}: {type(error).__name__}: {error}") from error


def _report(found: Mapping[str, Any]) -> Report:
    made_by = found["implementation"]
    return Report(
        implementation=made_by["name"], location=made_by["location"], framework=made_by["framework"],
        profile=found["profile"], level=Level(found["level"]), seed=found["seed"] or 0, isolation=found["isolation"],
        device=found["device"], dtype=found.get("dtype", ""), variant=found["variant"], only=tuple(found["only"]),
        without=tuple(found.get("without", ())), live=found.get("live", False),
        results=[_result(number, item) for number, item in enumerate(found["clauses"])],
        notes=list(found["notes"]), missing=list(found["missing"]),
        unusable={
            item["name"]: Unusable(item["problem"], item["where"], tuple(item["advice"]))
            for item in found.get("unusable", ())
        },
        skipped=list(found.get("skipped", ())),
        found=dict(found.get("found", {})), accounted=found.get("accounted", False),
        excuses=[
            Excuse(
                item["kind"], item["key"], item["component"], item["words"],
                coarse=item["arithmetic"] and item["kind"] == "dtypes",
            )
            for item in found.get("declared", {}).get("excuses", ())
        ],
        strict=found.get("strict", False), drawn=found.get("drawn", False), date=found.get("date", ""),
        sources=dict(found.get("sources", {})),
        stubs={item["name"]: item["where"] for item in found.get("stubs", ())},
        undeclared=[_undeclared(item) for item in found.get("undeclared", ())], hints=found["hints"],
        parts={item["component"]: DifferingPart(item["path"], item["message"]) for item in found["parts"]},
        pages=found.get("pages", ""), hidden=found.get("hidden", False),
        known=found["baseline"]["known"] if "baseline" in found else None,
        baseline=found.get("baseline", {}).get("file", ""),
        complete=found["complete"], late=found.get("late", ""), seconds=found["seconds"],
    )  # fmt: skip


def _result(number: int, found: Mapping[str, Any]) -> Result:
    return Result(
        clause=_clause(number, found), verdict=Verdict(found["verdict"]), finding=finding_from(found),
        distance=found["distance"], reason=found["reason"],
        exempted_by=found.get("exempted_by", ""),
        blocked_by=found["blocked_by"], where=found["where"], output=found["output"],
        looks_like=tuple(_likeness(item) for item in found["looks_like"]), seconds=found["seconds"],
        excerpt=_excerpt(found.get("excerpt")),
        unfinished=found.get("unfinished", False),
    )  # fmt: skip


def _excerpt(found: Mapping[str, Any] | None) -> Excerpt | None:
    """Read a piece of two arrays; JSON has null for numbers that are not finite."""
    if found is None:
        return None
    got, want = (tuple(tuple(map(_number, row)) for row in found[name]) for name in ("got", "want"))
    hidden = tuple(tuple(map(bool, row)) for row in found.get("hidden") or ())
    if not got or not got[0] or {len(row) for row in (*got, *want, *hidden)} != {len(got[0])} or len(got) != len(want):
        raise ValueError("the rows of an excerpt have different lengths")
    if hidden and len(hidden) != len(got):
        raise ValueError("an excerpt and its mask have different lengths")
    row, column = found["first"]
    return Excerpt(
        got, want, _number(found["allowed"]), tuple(found["shape"]), tuple(found["at"]), (row, column), hidden
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _clause(number: int, found: Mapping[str, Any]) -> Clause:
    """Title, level and component come from the report, even if the law has changed."""
    known = clauses().get(found["id"])
    return Clause(
        id=found["id"], title=found["title"], level=Level(found["level"]), component=found["component"],
        needs=tuple(found["needs"]),
        normative=known.normative if known else "", why=known.why if known else "", fix=known.fix if known else "",
        evidence=known.evidence if known else (), profile=known.profile if known else "",
        since=known.since if known else "", source=known.source if known else "",
        document="", line=number,  # the order of the file, which is that of the law at that time
        applies=known.applies if known else {},
    )  # fmt: skip


def _likeness(found: Mapping[str, Any]) -> LooksLike:
    symptom, area, mistake = [*map(str, found["hint"]), "", "", ""][:3]
    return LooksLike(
        found.get("defect", ""), found.get("title", ""), Certainty(found["certainty"]),
        tuple(found.get("together_with", ())), Hint(symptom, area, mistake),
    )  # fmt: skip


def _undeclared(found: Mapping[str, Any]) -> Undeclared:
    names = ("component", "choice", "declared", "actual", "table", "line")
    return Undeclared(*(found[name] for name in names))
