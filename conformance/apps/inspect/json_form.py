"""An inspection as JSON, as described by inspect.schema.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from conformkit.conformance.apps.inspect.inspection import Inspection, Part, Weight
from conformkit.conformance.report.json_text import json_text, packaged_schema
from conformkit.conformance.text import one_line, plain
from conformkit.conformance.versions import kit_version

__all__ = ["SCHEMA", "as_json", "as_object", "schema"]

SCHEMA = "conformkit.inspection/1"
"""Name and version of the format. New fields keep the number; changing or removing a field raises it."""


def as_json(found: Inspection) -> str:
    """Return the inspection as JSON text."""
    return json_text(as_object(found))


def as_object(found: Inspection) -> dict[str, Any]:
    """Return the inspection as plain dictionaries and lists; null stands for a number that is not finite."""
    return {
        "schema": SCHEMA,
        "kit": kit_version(),
        "implementation": {"name": plain(found.implementation), "framework": plain(found.framework)},
        "component": found.component,
        "seed": found.seed,
        "isolation": found.isolation,
        "sizes": _sizes(found.sizes),
        "input": list(found.inputs),
        "parameters": sum(weight.count for weight in found.weights),
        "loss": _finite(found.loss),
        "differentiated": found.differentiated,
        "parts": [_part(part) for part in found.parts],
        "attention": [
            {
                "part": one_line(heads.part),
                "entropy": list(heads.entropy),
                "most": heads.most,
                "distance": list(heads.distance),
                "future": list(heads.future),
            }
            for heads in found.heads
        ],
        "weights": [_weight(weight, reached=found.differentiated) for weight in found.weights],
        "conspicuous": [
            {"place": one_line(item.place), "problem": one_line(item.problem), "advice": item.advice}
            for item in found.conspicuous
        ],
    }


def schema() -> dict[str, Any]:
    """Return the JSON Schema that every inspection satisfies."""
    return packaged_schema(__package__, "inspect")


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": one_line(part.name), "kind": one_line(part.kind), "output": list(part.shape), "rms": part.rms,
        "largest": part.largest, "not_finite": part.broken, "calls": part.calls, "dead": part.dead,
        "units": part.units,
    }  # fmt: skip


def _weight(weight: Weight, *, reached: bool) -> dict[str, Any]:
    return {
        "name": one_line(weight.name), "shape": list(weight.shape), "gradient": _finite(weight.gradient),
        "reached": reached and weight.gradient is not None,
    }  # fmt: skip


def _sizes(sizes: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if value is None or isinstance(value, bool | int | float)}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
