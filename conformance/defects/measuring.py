"""Judge the reference with defects in it, on the clauses that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from conformkit.conformance.defects import Defect, defects
from conformkit.conformance.defects.witness import witness
from conformkit.conformance.driver.shared import SharedNursery
from conformkit.conformance.driver.warm import Nursery, nursery
from conformkit.conformance.runner import LoadFailure
from conformkit.spec.clauses import clauses

__all__ = ["measure", "red_with"]

_AT_ONCE = 2
"""So many references with defects are judged side by side."""
_TRIES = 48
"""So many places for weights are tried, for the defects that are about names or shapes."""


def measure(ids: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Judge the reference with one defect after another; yield each with those of its clauses that were red."""
    warm = nursery(1, torch=True)
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shared = SharedNursery(warm)
            yield from zip(ids, pool.map(lambda name: red_with(defects()[name], shared), ids), strict=True)
    finally:
        warm.close()


def red_with(defect: Defect, warm: Nursery) -> list[str]:
    """Judge the reference with a defect in it on the clauses that the defect names; return those that are red.

    Where the defect keeps the reference from being loaded at all, no run of it conforms: that breaks every clause.
    Raises PatchError.
    """
    components = _components(defect.clauses)
    try:
        profile = clauses()[defect.clauses[0]].profile
        with witness([defect], components, variant=defect.variant, warm=warm, profile=profile, tries=_TRIES) as judge:
            return [name for name in defect.clauses if judge.result(name).verdict.red]
    except LoadFailure:
        return list(defect.clauses)


def _components(names: Sequence[str]) -> set[str] | None:
    """Return what these clauses, and those that they need, are about; None for everything."""
    found: set[str] = set()
    waiting, seen = list(names), set(names)
    while waiting:
        clause = clauses()[waiting.pop()]
        if clause.component == "all":
            return None
        found.add(clause.component)
        waiting += [name for name in clause.needs if name not in seen]
        seen.update(clause.needs)
    return found
