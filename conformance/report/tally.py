"""How far each part is: how many of its binding clauses pass, and how many passed in the run before."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from conformkit.conformance.engine.results import Report, Verdict
from conformkit.spec.clauses import Clause

__all__ = ["Tally", "last_time", "part", "remember", "tally"]

_WHOLE = "whole-model clauses"


@dataclass(frozen=True, slots=True)
class Tally:
    """A component or tool, how many of its clauses are asked for, and how many of these pass."""

    name: str
    passed: int
    asked: int


def tally(report: Report) -> list[Tally]:
    """Return the parts in the order of the law; clauses that do not bind or do not apply are not counted."""
    asked: dict[str, list[bool]] = {}
    for result in report.results:
        binds = report.level.includes(result.clause.level) and not report.unreached(result)
        if binds and result.verdict is not Verdict.NOT_APPLICABLE:
            asked.setdefault(part(result.clause), []).append(result.verdict is Verdict.PASS)
    return [Tally(name, sum(passed), len(passed)) for name, passed in asked.items()]


def part(clause: Clause) -> str:
    """Return which part a clause is about: a component, a tool, or the code as a whole."""
    return _WHOLE if clause.component == "all" else clause.component


def last_time(report: Report) -> Mapping[str, int]:
    """Return how many clauses of each part passed when the same was asked of the same code; empty if unknown."""
    try:
        found = json.loads(_file(report).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): passed for name, passed in found.items() if isinstance(passed, int)}


def remember(report: Report) -> None:
    """Store the counts in the user's cache, never next to the judged code; if that can't be written, nothing is."""
    path = _file(report)
    text = json.dumps({part.name: part.passed for part in tally(report)})
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(text, encoding="utf-8")
        scratch.replace(path)


def _file(report: Report) -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    asked = [report.location, report.implementation, report.profile, report.level.value, *report.only, *report.without]
    return cache / "conformkit" / "passed" / f"{hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:32]}.json"
