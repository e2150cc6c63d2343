"""Judge the reference with defects in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from conformkit.conformance.defects import Defect, defects
from conformkit.conformance.defects.witness import witness
from conformkit.conformance.driver.shared import SharedNursery
from conformkit.conformance.driver.warm import Nursery, nursery
from conformkit.conformance.runner import LoadFailure
from conformkit.spec.clauses import clauses, clauses_of

__all__ = ["measure", "red_with"]

_AT_ONCE = 2
"""So many references with defects are judged side by side."""
_TRIES = 48
"""So many places for weights are tried, for the defects that are about names or shapes."""


def measure(ids: Sequence[str], *, named_only: bool = False) -> Iterator[tuple[str, list[str]]]:
    """Judge the reference with one defect after another; yield each with the clauses that were red.

    All clauses of its profile are asked, or those alone that the defect names.
    """

    def red(name: str) -> list[str]:
        defect = defects()[name]
        return red_with(defect, shared, defect.clauses if named_only else ())

    warm = nursery(1, torch=True)
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shared = SharedNursery(warm)
            yield from zip(ids, pool.map(red, ids), strict=True)
    finally:
        warm.close()


def red_with(defect: Defect, warm: Nursery, names: Sequence[str] = ()) -> list[str]:
    """Judge the reference with a defect in it; return which of these clauses are red, of its whole profile without any.

    Where the defect keeps the reference from being loaded at all, no run of it conforms: that breaks what it names.
    Raises PatchError.
    """
    profile = clauses()[defect.clauses[0]].profile
    asked = names or tuple(clauses_of(profile))
    try:
        with witness(
            [defect], _components(asked), variant=defect.variant, warm=warm, profile=profile, tries=_TRIES
        ) as judge:
            return [name for name in asked if judge.result(name).verdict.red]
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
