"""Judge the reference with defects in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from conformkit.conformance.defects import Defect, defects
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import SharedNursery
from conformkit.conformance.driver.spawn.warm import Nursery, nursery
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import LoadFailure
from conformkit.conformance.engine.providers import components_asked
from conformkit.conformance.suite.registry import arguments, tests
from conformkit.spec.clauses import clauses, clauses_of

__all__ = ["measure", "measure_named", "named_red_with", "red_with"]

_AT_ONCE = 2
"""So many references with defects are judged side by side."""
_TRIES = 48
"""So many places for weights are tried, for the defects that are about names or shapes."""


def measure(ids: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Judge the reference with one defect after another; yield each with the clauses of its profile that were red."""
    yield from _each(red_with, ids)


def measure_named(ids: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Ask of each defect no more than the clauses that it names; yield it with those that were red.

    What they need is taken for granted: when all was judged, it held.
    """
    yield from _each(named_red_with, ids)


def _each(judged: Callable[[Defect, Nursery], list[str]], ids: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    warm = nursery(1, torch=True)
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shared = SharedNursery(warm)
            yield from zip(ids, pool.map(lambda name: judged(defects()[name], shared), ids), strict=True)
    finally:
        warm.close()


def red_with(defect: Defect, warm: Nursery) -> list[str]:
    """Judge the reference with a defect in it on its whole profile; return the clauses that are red.

    Where the defect keeps the reference from being loaded at all, no run of it conforms: that breaks what it names.
    Raises PatchError.
    """
    try:
        with _witness(defect, None, warm) as judge:
            return [name for name in clauses_of(_profile(defect)) if judge.result(name).verdict.red]
    except LoadFailure:
        return list(defect.clauses)


def named_red_with(defect: Defect, warm: Nursery) -> list[str]:
    """As `red_with`, on the clauses alone that the defect names."""
    try:
        with _witness(defect, _components(defect), warm) as judge:
            # what remembers earlier calls may be right until the needed clauses have made theirs
            return [name for name in defect.clauses if judge.alone(name).verdict.red or judge.result(name).verdict.red]
    except LoadFailure:
        return list(defect.clauses)


def _witness(defect: Defect, components: Collection[str] | None, warm: Nursery) -> AbstractContextManager[Judge]:
    profile = _profile(defect)
    return witness([defect], components, variant=defect.variant, warm=warm, profile=profile, tries=_TRIES)


def _profile(defect: Defect) -> str:
    return clauses()[defect.clauses[0]].profile


def _components(defect: Defect) -> set[str] | None:
    """Return what the clauses that it names are about, and what their tests ask for; None for everything."""
    found = {clauses()[name].component for name in defect.clauses}
    for name in defect.clauses:
        found |= components_asked(arguments(tests(_profile(defect))[name]))
    return None if "all" in found else found
