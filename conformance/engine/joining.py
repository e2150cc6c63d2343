"""Several runs of one implementation as one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from conformkit.conformance.engine.results import Report, Result

__all__ = ["joined"]

Item = TypeVar("Item")


def joined(profile: str, reports: Sequence[Report]) -> Report:
    """Return the reports of several profiles as that of one called `profile`, `lm,paths`.

    A clause that several of them have keeps its first result.
    """
    results: dict[str, Result] = {}
    for result in (result for report in reports for result in report.results):
        results.setdefault(result.clause.id, result)
    return replace(
        reports[-1], profile=profile, results=list(results.values()),
        variant={name: value for report in reports for name, value in report.variant.items()},
        sources={name: place for report in reports for name, place in report.sources.items()},
        stubs={name: line for report in reports for name, line in report.stubs.items()},
        unusable={name: why for report in reports for name, why in report.unusable.items()},
        parts={name: part for report in reports for name, part in report.parts.items()},
        notes=_once(note for report in reports for note in report.notes),
        missing=_once(name for report in reports for name in report.missing),
        skipped=_once(name for report in reports for name in report.skipped),
        undeclared=_once(choice for report in reports for choice in report.undeclared),
        found={name: path for report in reports for name, path in report.found.items()},
        excuses=_once(excuse for report in reports for excuse in report.excuses),
        complete=all(report.complete for report in reports),
        late=next((report.late for report in reports if report.late), ""),
        seconds=sum(report.seconds for report in reports),
    )  # fmt: skip


def _once(items: Iterable[Item]) -> list[Item]:
    """Return what there is, each once; not all of it can be hashed."""
    found: list[Item] = []
    for item in items:
        if item not in found:
            found.append(item)
    return found
