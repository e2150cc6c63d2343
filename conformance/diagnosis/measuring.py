"""Judge the reference with defects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

from conformkit.conformance.defects import Defect, defects
from conformkit.conformance.diagnosis.patching import PatchError
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.needed import of_tests
from conformkit.conformance.probing.known import Known
from conformkit.spec.clauses import clauses, clauses_of
from conformkit.spec.variants import Variant

__all__ = ["Breakage", "measure", "named_with", "red_with"]

_AT_ONCE = 2
"""Number of references with defects that are judged at the same time."""
_TRIES = 48
"""Maximum number of weight assignments to try, for defects about names or shapes."""


def measure(ids: Sequence[str], seed: int = 0) -> Iterator[tuple[str, list[str]]]:
    """Judge the reference with one defect after another; yield each with the red clauses of its profile."""
    warm = worker_factory(1, torch=True)
    try:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            shared = SharedFactory(warm)
            yield from zip(ids, pool.map(lambda name: red_with(defects()[name], shared, seed), ids), strict=True)
    finally:
        warm.close()


def red_with(defect: Defect, warm: WorkerFactory, seed: int = 0, without: Collection[str] = ()) -> list[str]:
    """Judge the reference with a defect on its whole profile, `without` some clauses; return those that are red.

    If the defect prevents the reference from loading, no run conforms: that counts as breaking the clauses it names.
    Raises PatchError.
    """
    try:
        with _witness(defect, None, warm, seed) as judge:
            wanted = [name for name in clauses_of(_profile(defect)) if name not in without]
            return [name for name in wanted if judge.result(name).verdict.red]
    except LoadFailure:
        return list(defect.clauses)


@dataclass(frozen=True)
class Breakage:
    """What a defect does to the clauses that it names."""

    red: tuple[str, ...]
    """Those that are red."""
    failures: tuple[tuple[str, str, tuple[str, ...]], ...]
    """What is said of those that are red without any call before them: id, message, details."""


def named_with(defect: Defect, warm: WorkerFactory) -> Breakage:
    """Judge the reference with a defect on the clauses that it names. Raises PatchError."""
    try:
        with _witness(defect, _components(defect), warm, 0, known=_reference(defect, warm)) as judge:
            # a defect that depends on earlier calls may only show after the calls of the needed clauses
            alone = [judge.alone(name) for name in defect.clauses]
            after = [result if result.verdict.red else judge.result(result.clause.id) for result in alone]
    except LoadFailure as failure:
        return Breakage(defect.clauses, (("", str(failure), ()),))
    red = [result for result in after if result.verdict.red]
    for result in red:
        if result.finding is not None and result.finding.error == "NameError":
            what = "by a name that is missing, not by its mistake"
            raise PatchError(f"{defect.id} breaks {result.clause.id} {what}: {result.message}")
    said = tuple((r.clause.id, r.message, tuple(r.details)) for r in alone if r.verdict.red)
    return Breakage(tuple(result.clause.id for result in red), said)


def _witness(
    defect: Defect, components: Collection[str] | None, warm: WorkerFactory, seed: int,
    known: Mapping[str, Known] | None = None,
) -> AbstractContextManager[Judge]:  # fmt: skip
    return witness(
        [defect], components, variant=defect.variant, warm=warm, profile=_profile(defect), seed=seed, tries=_TRIES,
        known=known,
    )  # fmt: skip


_KNOWN: dict[tuple[str, Variant, frozenset[str] | None], Mapping[str, Known]] = {}
"""What was learned of the reference in each variant, by its profile and components: most defects leave all of it."""


def _reference(defect: Defect, warm: WorkerFactory) -> Mapping[str, Known]:
    """Return how the reference without the defect is bound where its clauses are judged."""
    profile, components = _profile(defect), _components(defect)
    key = profile, defect.variant, frozenset(components) if components is not None else None
    if key not in _KNOWN:
        with witness([], components, variant=defect.variant, warm=warm, profile=profile, tries=_TRIES) as judge:
            _KNOWN[key] = judge.implementation.learned()
    return _KNOWN[key]


def _profile(defect: Defect) -> str:
    return clauses()[defect.clauses[0]].profile


def _components(defect: Defect) -> set[str] | None:
    """Return the components of the clauses that it names and of their tests' arguments; None for everything."""
    return of_tests((clauses()[name] for name in defect.clauses), _profile(defect))
