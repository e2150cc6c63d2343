"""A port as JSON, as described by port.schema.json."""

from __future__ import annotations

import math
from typing import Any

from conformkit.conformance.apps.port.proof import Proof
from conformkit.conformance.apps.port.request import PortReport
from conformkit.conformance.report.json_text import json_text, packaged_schema
from conformkit.conformance.text import one_line
from conformkit.conformance.versions import kit_version

__all__ = ["SCHEMA", "as_json", "as_object", "schema"]

SCHEMA = "conformkit.port/1"
"""Name and version of the format. New fields keep the number; changing or removing a field raises it."""


def as_json(found: PortReport) -> str:
    """Return the report as JSON text."""
    return json_text(as_object(found))


def as_object(found: PortReport) -> dict[str, Any]:
    """Return the report as plain dictionaries and lists; null stands for a number that is not finite."""
    return {
        "schema": SCHEMA,
        "kit": kit_version(),
        "theirs": one_line(found.theirs, 300),
        "ours": one_line(found.ours, 300),
        "proved": found.proved,
        "first": found.first,
        "code": _proof(found.code),
        "checkpoint": _proof(found.checkpoint) if found.checkpoint else None,
        "differences": [
            {"choice": choice, "theirs": one, "ours": other} for choice, (one, other) in found.differences.items()
        ],
        "problems": [one_line(problem, 500) for problem in found.problems],
        "mistakes": [
            {"id": m.id, "sentence": one_line(m.sentence, 500), "certainty": m.certainty, "where": list(m.where)}
            for m in found.mistakes
        ],
        "notes": [one_line(note, 500) for note in found.notes],
        "written": found.written,
        "map": found.map,
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema that every such report satisfies."""
    return packaged_schema(__package__, "port")


def _proof(proof: Proof) -> dict[str, Any]:
    return {
        "holds": proof.holds,
        "dtype": proof.dtype,
        "sizes": dict(proof.sizes),
        "ids": proof.ids,
        "parts": [
            {"part": one.part, "error": one.error if math.isfinite(one.error) else None, "allowed": one.allowed,
             "same": one.same}
            for one in proof.compared
        ],
    }  # fmt: skip
