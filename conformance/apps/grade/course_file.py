"""The table [course] of policy.toml."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, cast

from conformkit.conformance.apps.grade.policy import CoursePolicy
from conformkit.conformance.binding.messages import shown
from conformkit.conformance.binding.toml_nodes import Node

__all__ = ["read_course"]

_FILES = ("roster", "adjustments", "submitted")
_KEYS = (*_FILES, "deadline", "per_day", "most", "grace_minutes", "attempts")


def read_course(node: Node, policy: Path) -> CoursePolicy:
    """Return what the table says; its files lie next to the policy. Raises ConfigError."""
    keys = node.table(_KEYS)
    if "roster" not in keys:
        raise node.error("a course needs its roster", 'roster = "roster.csv", with the columns id and name')
    if "deadline" in keys and "submitted" not in keys:
        raise keys["deadline"].error(
            "there is no table of times", 'submitted = "submitted.csv", with submission and time'
        )
    found: dict[str, Any] = {name: _file(keys[name], policy) for name in _FILES if name in keys}
    for name in ("per_day", "most"):
        if name in keys:
            found[name] = _percent(keys[name])
    if "grace_minutes" in keys:
        found["grace_minutes"] = keys["grace_minutes"].positive()
    if "attempts" in keys:
        found["attempts"] = cast("Any", keys["attempts"].choice(("best", "last")))
    if "deadline" in keys:
        found["deadline"] = _moment(keys["deadline"])
    return CoursePolicy(**found)


def _file(node: Node, policy: Path) -> str:
    path = policy.parent / node.text(1000)
    if not path.is_file():
        raise node.error(f"there is no file {shown(path)}")
    return str(path)


def _percent(node: Node) -> float:
    found = node.positive()
    if found > 100:
        raise node.error(f"it is {found:g}, expected at most 100: a percentage")
    return found


def _moment(node: Node) -> str:
    """Return a date with time and zone, given as TOML's own or as a string."""
    value = node.value
    try:
        when = value if isinstance(value, datetime) else datetime.fromisoformat(node.text(60))
    except ValueError:
        raise node.error(f"{shown(value)} is no date", "write it as 2026-11-23T18:00:00+01:00") from None
    if when.tzinfo is None:
        raise node.error("it has no time zone", "write it as 2026-11-23T18:00:00+01:00")
    return when.isoformat()
