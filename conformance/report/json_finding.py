"""A finding as plain values and back: numbers as numbers, so that nobody has to take a sentence apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from conformkit.conformance.findings.altered import Altered
from conformkit.conformance.findings.finding import FactValue, Finding, Kind
from conformkit.conformance.findings.relation import How, Relation
from conformkit.conformance.findings.setting import Setting
from conformkit.conformance.findings.threshold import Pattern, Threshold
from conformkit.conformance.text import plain

__all__ = ["finding_from", "finding_object"]


def finding_object(found: Finding | None) -> dict[str, Any] | None:
    """Return what was found; None where nothing was. Numbers that are not finite are text: `nan`, `inf`."""
    if found is None:
        return None
    return {
        "kind": found.kind.value, "label": plain(found.label), "got": _fact(found.got), "want": _fact(found.want),
        "at": list(found.at), "bad": found.bad, "of": found.of, "worst": _fact(found.worst),
        "allowed": found.allowed, "tolerance": found.tolerance, "format": plain(found.form),
        "rows": list(found.rows), "notes": [plain(note) for note in found.notes],
        "setting": _setting(found.setting), "sampled": found.sampled, "own_draws": found.own_draws,
        "threshold": _threshold(found.threshold), "error": plain(found.error), "said": plain(found.said),
        "verbatim": found.verbatim, "relation": _relation(found.relation),
    }  # fmt: skip


def finding_from(item: Mapping[str, Any]) -> Finding | None:
    """Return the finding of a clause in a stored report, older ones of which have sentences only."""
    found = item.get("finding")
    if found is None:
        said = item["message"] or item["details"]
        return Finding(Kind.UNTRUE, item["message"], notes=tuple(item["details"]), verbatim=True) if said else None
    return Finding(
        Kind(found["kind"]), found["label"], _number(found["got"]), _number(found["want"]), tuple(found["at"]),
        found["bad"], found["of"], None if found["worst"] is None else float(found["worst"]), found["allowed"],
        found["tolerance"], found["format"], tuple(found["rows"]), tuple(found["notes"]), _setting_of(found["setting"]),
        found["sampled"], found["own_draws"], _threshold_of(found["threshold"]), found["error"], found["said"],
        found["verbatim"], _relation_of(found.get("relation")),
    )  # fmt: skip


def _fact(value: FactValue) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else plain(str(value))


def _number(value: Any) -> FactValue:
    """Return a value as it was: extents are a tuple, and a number that is not finite came as text."""
    if isinstance(value, list):
        return tuple(value)
    found: FactValue = float(value) if value in {"nan", "inf", "-inf"} else value
    return found


def _setting(found: Setting | None) -> dict[str, Any] | None:
    if found is None:
        return None
    values = {plain(str(name)): _fact_of(value) for name, value in found.values.items()}
    return {"text": plain(str(found)), "values": values, "found": found.found}


def _fact_of(value: object) -> Any:
    return _fact(value) if isinstance(value, bool | int | float) or value is None else plain(str(value))


def _setting_of(found: Mapping[str, Any] | None) -> Setting | None:
    """Return a setting with the same text; the values are for programs."""
    if found is None:
        return None
    values = Setting("", dict(found["values"]), found=found["found"])
    return values if found["values"] and str(values) == found["text"] else Setting("", found["text"])


def _relation(found: Relation | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "how": found.how.value, "numbers": list(found.numbers), "names": list(found.names), "axis": found.axis,
        "where": found.where, "change": found.change and found.change.value, "text": str(found),
    }  # fmt: skip


def _relation_of(found: Mapping[str, Any] | None) -> Relation | None:
    if found is None:
        return None
    numbers = tuple(map(float, found["numbers"]))
    change = Altered(found["change"]) if found.get("change") else None
    return Relation(How(found["how"]), numbers, tuple(found["names"]), found["axis"], found["where"], change)


def _threshold(found: Threshold | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "pattern": found.pattern.value, "sizes": list(found.sizes), "joined": found.joined, "first": found.first,
        "last": found.last, "beyond": found.beyond, "step": found.step, "ratio": found.ratio, "more": found.more,
        "further": _threshold(found.further),
    }  # fmt: skip


def _threshold_of(found: Mapping[str, Any] | None) -> Threshold | None:
    if found is None:
        return None
    return Threshold(
        Pattern(found["pattern"]), tuple(found["sizes"]), found["joined"], found["first"], found["last"],
        found["beyond"], found["step"], found["ratio"], found["more"], _threshold_of(found["further"]),
    )  # fmt: skip
