"""What did not pass in the last run of the same code, so that a run can begin with it, in the user's cache."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.files import write
from conformkit.spec.clauses import clauses

__all__ = ["failed_last", "remember_failed"]


def failed_last(impl: str, profile: str, folder: Path) -> tuple[str, ...]:
    """Return the clauses that kept this code from conforming when they were last judged; empty if none is known."""
    try:
        found = json.loads(_file(impl, profile, folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(name for name in found if name in clauses()) if isinstance(found, list) else ()


def remember_failed(report: Report, folder: Path) -> None:
    """Store them; a clause that this run did not judge stays as it was. What can't be written is not stored."""
    judged = {result.clause.id for result in report.results if result.verdict is not Verdict.NOT_RUN}
    before = failed_last(report.implementation, report.profile, folder)
    red = [result.clause.id for result in report.results if result.clause.id in judged and report.breaks(result)]
    path = _file(report.implementation, report.profile, folder)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, json.dumps([*(name for name in before if name not in judged), *red]))


def _file(impl: str, profile: str, folder: Path) -> Path:
    """Return the file about what a name or path means in this folder."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(json.dumps([str(folder.resolve()), impl, profile]).encode()).hexdigest()
    return cache / "conformkit" / "failed" / f"{digest[:32]}.json"
