"""A baseline: what is known to be wrong, in a file next to the code, so that only what is new fails a job.

It changes no verdict and no word about conformance, only the exit code. It lists clauses, not numbers: one that fails
otherwise than before is still the same entry. One that was blocked and now fails is new: nobody has seen that failure.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path

from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.json_text import json_text
from conformkit.conformance.text import listed, one_line
from conformkit.spec.clauses import clauses

__all__ = ["NotABaseline", "as_object", "read_baseline", "standing", "updated"]

_SCHEMA = "conformkit.baseline/1"
_MAX_BYTES = 4 << 20
_NAMED = 6
_WORDS = {verdict.value for verdict in Verdict} | {"skipped"}


class NotABaseline(ValueError):
    """A file that cannot be used as a baseline; the text says why."""


def read_baseline(path: Path) -> dict[str, str]:
    """Return the clauses that a file lists, with the verdicts that they had. Raises NotABaseline, OSError."""
    if path.stat().st_size > _MAX_BYTES:
        raise NotABaseline("it is far longer than any baseline")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise NotABaseline(f"it is not JSON: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != _SCHEMA or not isinstance(found.get("known"), dict):
        raise NotABaseline(f"it is not an object of schema {_SCHEMA}")
    for name, verdict in found["known"].items():
        if name not in clauses():
            near = difflib.get_close_matches(name, clauses(), n=1)
            raise NotABaseline(f"it lists {name!r}, which is no clause{f'; nearest: {near[0]}' if near else ''}")
        if verdict not in _WORDS:
            raise NotABaseline(f"it says that {name} is {verdict!r}, expected one of {', '.join(sorted(_WORDS))}")
    return dict(found["known"])


def updated(report: Report) -> str:
    """Return the file that accepts what a finished run found; entries about clauses that it did not judge stay."""
    judged = {result.clause.id for result in report.results if result.verdict is not Verdict.NOT_RUN}
    known = {name: verdict for name, verdict in (report.known or {}).items() if name not in judged}
    known |= {r.clause.id: _word(r) for r in report.results if report.breaks(r) and r.clause.id in judged}
    return json_text({"schema": _SCHEMA, "known": dict(sorted(known.items()))})


def standing(report: Report) -> list[str]:
    """Return how a report compares with its baseline, for the verdict line; nothing without one."""
    if report.known is None:
        return []
    name = one_line(report.baseline, 200)
    new, passing = [result.clause.id for result in report.fresh()], report.outdated()
    accepted = any(report.accepted(result) for result in report.results)
    lines = [f"new, not in {name}: {_named(new)}"] if new else []
    lines += [f"nothing new: all of it is in {name}"] if accepted and report.settled else []
    lines += [f"no longer broken, remove from {name} (--update-baseline does): {_named(passing)}"] if passing else []
    return lines


def _named(names: list[str]) -> str:
    return listed(names, _NAMED)


def _word(result: Result) -> str:
    return result.verdict.value if result.verdict.red or not result.exempted_by else "skipped"


def as_object(report: Report) -> Mapping[str, object]:
    """Return what machines read about the baseline."""
    return {
        "file": one_line(report.baseline, 400), "known": dict(report.known or {}), "settled": report.settled,
        "new": [result.clause.id for result in report.fresh()], "outdated": report.outdated(),
    }  # fmt: skip
