"""A report as SARIF 2.1.0, for code scanning: a rule is a clause, a result is a clause that fails.

A binding clause is an `error`, any other a `warning`. Every result has a location: the line that raised, else the class
that the clause is about, else the file.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from conformkit.conformance.engine.results import Report, Result
from conformkit.conformance.report.causes import labelled
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.json_text import json_text
from conformkit.conformance.report.places import place, place_of_refusal, somewhere, stand_in
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.wording import command, failures, in_order, page_of, verdict_line
from conformkit.conformance.text import one_line, plain
from conformkit.conformance.versions import SPEC_VERSION, kit_version
from conformkit.spec.clauses import Clause

__all__ = ["as_sarif", "refusal_as_sarif"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_REFUSED: dict[str, Any] = {
    "id": "not-judged",
    "shortDescription": {"text": "The code can be loaded and bound."},
    "fullDescription": {"text": "Without that, no clause can be judged."},
    "help": {"text": "Fix what raises at import, or what conform.toml says, and judge again."},
    "defaultConfiguration": {"level": "error"},
}


def as_sarif(report: Report, root: Path | None = None) -> str:
    """Return the report as SARIF text; files are named relative to `root`, by default the current folder."""
    found = from_object(as_object(report))
    clauses = [result.clause for result in in_order(found)]
    numbers = {clause.id: number for number, clause in enumerate(clauses)}
    results = [_result(found, result, numbers, root or Path.cwd()) for result in failures(found)]
    run = {
        **_run([_rule(clause, page_of(found, clause.id), told=found.hints >= 3) for clause in clauses], results),
        "invocations": [_invocation(found)],
        "properties": {
            "conforms": found.conforms,
            "verdict": verdict_line(found),
            "spec": SPEC_VERSION,
            "declared": as_object(found)["declared"],
        },
    }
    return _log(run)


def refusal_as_sarif(implementation: str, problem: str, where: str, root: Path | None = None) -> str:
    """Return SARIF for code that could not be judged at all: one result, at the line at fault if it is known."""
    found = place_of_refusal(implementation, where, root or Path.cwd())
    sentence = _unlinked(f"{one_line(implementation, 200)} cannot be judged: {plain(problem, 600)}")
    home = Path(implementation).resolve().parent
    elsewhere = place_of_refusal(implementation, where, home) or (stand_in(implementation), 1)
    result = {
        "ruleId": _REFUSED["id"], "ruleIndex": 0, "kind": "fail", "level": "error", "message": {"text": sentence},
        "locations": [_location(*found) if found else _outside(*elsewhere)],
        "partialFingerprints": {"clause/v1": _fingerprint(implementation, _REFUSED["id"])},
    }  # fmt: skip
    return _log({**_run([_REFUSED], [result]), "invocations": [{"executionSuccessful": False}]})


def _run(rules: list[dict[str, Any]], results: list[dict[str, Any]]) -> dict[str, Any]:
    driver = {"name": "conformkit", "version": kit_version(), "rules": rules}
    return {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}


def _log(run: dict[str, Any]) -> str:
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _invocation(report: Report) -> dict[str, Any]:
    """Describe the run; what conform.toml excuses is a notification about its configuration, not a result."""
    lines = [
        {
            "descriptor": {"id": f"declared/{excuse.kind}"},
            "level": "warning" if excuse.arithmetic else "note",
            "message": {"text": _unlinked(one_line(excuse.words, 400))},
            "properties": {"key": one_line(excuse.key, 200), "component": one_line(excuse.component, 80)},
        }
        for excuse in report.excuses
    ]
    found = {"toolConfigurationNotifications": lines} if lines else {}
    return {"executionSuccessful": report.complete, **found}


def _rule(clause: Clause, page: str, *, told: bool) -> dict[str, Any]:
    """Describe a clause; with hints below 3, without its fix."""
    lines = [clause.normative, f"Why: {clause.why}", f"Fix: {clause.fix}" if told else "", f"Source: {clause.source}"]
    text = "\n".join(line for line in lines if line) if clause.normative else clause.title
    return {
        "id": clause.id,
        "shortDescription": {"text": clause.title},
        "fullDescription": {"text": clause.normative or clause.title},
        "help": {"text": text},
        **({"helpUri": page} if page else {}),
        "defaultConfiguration": {"level": "error" if clause.level == "MUST" else "warning"},
        "properties": {"tags": [clause.component, clause.level.value]},
    }


def _result(report: Report, result: Result, numbers: dict[str, int], root: Path) -> dict[str, Any]:
    lines = [result.message or result.clause.title, *result.details]
    lines += [f"{label} {fact}" for label, fact in labelled(report, result)]
    lines.append(f"again: {command(report, result.clause.id)}")
    where = place(report, result, root)
    return {
        "ruleId": result.clause.id,
        "ruleIndex": numbers[result.clause.id],
        "kind": "fail",
        "level": "error" if report.breaks(result) else "warning",
        "message": {"text": _unlinked("\n".join(lines))},
        "locations": [_location(*where) if where else _outside(*somewhere(report, result))],
        "partialFingerprints": {"clause/v1": _fingerprint(report.implementation, result.clause.id)},
        "properties": {"verdict": result.verdict.value},
        **({"suppressions": [_suppression(report)]} if report.accepted(result) else {}),
    }


def _suppression(report: Report) -> dict[str, str]:
    """Say that a result is known: viewers do not count it as open."""
    listed_in = f"listed in {one_line(report.baseline, 200)}"
    return {"kind": "external", "status": "accepted", "justification": listed_in}


def _unlinked(text: str) -> str:
    """Break `[text](target)`, which viewers turn into a link, in text from an implementation."""
    return text.replace("](", "] (")


def _location(file: str, line: int) -> dict[str, Any]:
    artifact = {"uri": quote(file), "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": line}}}


def _outside(file: str, line: int) -> dict[str, Any]:
    """Return a location that is not below the root of the checkout."""
    return {"physicalLocation": {"artifactLocation": {"uri": quote(file)}, "region": {"startLine": line}}}


def _fingerprint(implementation: str, rule: str) -> str:
    """Return a fingerprint: the same clause of the same implementation is the same finding, even if its line moves."""
    return hashlib.sha256(f"{implementation}\n{rule}".encode()).hexdigest()[:32]
