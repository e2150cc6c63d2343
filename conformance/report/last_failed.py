"""What did not pass in the last run of the same code, so that a run can begin with it."""

from __future__ import annotations

from pathlib import Path

from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.remembered import keep, recall
from conformkit.spec.clauses import clauses

__all__ = ["failed_last", "remember_failed"]

_KIND = "failed"


def failed_last(impl: str, folder: Path) -> tuple[str, ...]:
    """Return the clauses that kept this code from conforming when they were last judged; empty if none is known."""
    found = recall(_KIND, _about(impl, folder))
    return tuple(name for name in found if name in clauses()) if isinstance(found, list) else ()


def remember_failed(report: Report, folder: Path) -> None:
    """Store them; a clause that this run did not judge stays as it was. What can't be written is not stored."""
    judged = {result.clause.id for result in report.results if result.verdict is not Verdict.NOT_RUN}
    before = failed_last(report.implementation, folder)
    red = [result.clause.id for result in report.results if result.clause.id in judged and report.breaks(result)]
    left = [name for name in before if name not in judged]
    keep(_KIND, _about(report.implementation, folder), [*left, *red])


def _about(impl: str, folder: Path) -> list[str]:
    """Return what stands for the code that a name or path means in this folder."""
    return [str(folder.resolve()), impl]
