"""One run: find the implementation, load it, judge clause after clause."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np

from conformkit.conformance.driver.location import Location
from conformkit.conformance.driver.spawn.warm import Nursery
from conformkit.conformance.engine.framework_guess import framework_notes
from conformkit.conformance.engine.implementation import Implementation, OutOfTime
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened, shared_nursery
from conformkit.conformance.engine.redaction import veil, veiled
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause, select
from conformkit.spec.components import components_of

__all__ = ["Progress", "empty_report", "run"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is; `last` is the newest result, if any."""

    done: int
    total: int
    clause_id: str
    title: str
    last: Result | None


@np.errstate(all="ignore")  # what an implementation returns may be anything
def run(
    request: RunRequest, on_progress: Callable[[Progress], None] | None = None,
    *, early: Nursery | None = None, trusted: Callable[[], Nursery] | None = None,
) -> Report:  # fmt: skip
    """Judge an implementation. Interrupted, return what there is so far, marked incomplete.

    `early` is a warm process that is on its way already; it is closed at the end, or at once where it does not fit.
    `trusted` gives one that outlives the run, for references with mistakes in them where they can't run beside the
    implementation.
    """
    started = time.perf_counter()
    left_out = {clause.id for clause in select(request.without)} if request.without else set()
    chosen = [clause for clause in select(request.only, request.profile) if clause.id not in left_out]
    with shared_nursery(request, early) as warm, opened(request, warm) as (implementation, location):
        report = empty_report(request, implementation, location)
        report.missing = _missing(request, chosen, implementation)
        turns = sorted(chosen, key=lambda clause: clause.id not in request.first)
        tell = _Teller(report, chosen, turns, on_progress)
        try:
            _judge_all(request, implementation, turns, tell, warm)
            report.complete = True
            if not report.conforms:
                from conformkit.conformance.diagnosis.causes import name_causes

                own = warm if request.isolation == "process" else None
                name_causes(request, report, implementation, own, trusted)
        except OutOfTime:
            _give_up(request, chosen, report)
        except KeyboardInterrupt:
            pass  # the report stays marked incomplete
    if request.hidden:
        veil(report)
    report.seconds = time.perf_counter() - started
    return report


def _give_up(request: RunRequest, chosen: list[Clause], report: Report) -> None:
    """Say of the clauses that are left that there was no time; what was judged stays, in the order of the law."""
    judged = {result.clause.id: result for result in report.results}
    reason = f"the time for the whole run was up, {request.seconds:g} s"
    late = {c.id: Result(c, Verdict.NOT_RUN, reason=reason, tried=False) for c in chosen if c.id not in judged}
    report.results = [(judged | late)[clause.id] for clause in chosen]


def empty_report(request: RunRequest, implementation: Implementation, location: Location) -> Report:
    """Return the report of a run that has judged nothing yet."""
    return Report(
        implementation=request.impl, location=str(location.path or location.name), framework=implementation.framework,
        profile=request.profile, level=request.level, seed=request.seed, isolation=request.isolation,
        device=request.device, dtype=request.dtype, variant=_variants(implementation), only=request.only,
        without=request.without, hints=request.hints, pages=request.pages, hidden=request.hidden,
        stubs=dict(implementation.stubs), sources=dict(implementation.sources),
        notes=[
            *_isolation_notes(implementation), *_accuracy_notes(implementation),
            *framework_notes(implementation, location),
            *(note for b in implementation.bounds() for note in b.notes),
        ],
    )  # fmt: skip


def _isolation_notes(implementation: Implementation) -> list[str]:
    return [implementation.session.note] if implementation.session.note else []


def _accuracy_notes(implementation: Implementation) -> list[str]:
    form, allowed = implementation.accuracy("all")
    return [f"judged in {form}: numbers may be off by {allowed:g} of the largest, in each component"] if form else []


def _variants(implementation: Implementation) -> dict[str, object]:
    """Return the declared choices; one that holds for some components only is listed under `Component.choice`."""
    found: dict[str, object] = dict(implementation.config.variant)
    for bound in implementation.bounds():
        for name, value in bound.config.variant.items():
            found[f"{bound.component.name}.{name}"] = value
    return found


def _missing(request: RunRequest, chosen: list[Clause], implementation: Implementation) -> list[str]:
    """Return the required components that are lacking; with `only`, of those that its clauses are about."""
    if request.profile == "lm":
        return []
    asked = _concerned(chosen) if request.only else components_of(request.profile).keys()
    return [name for name in implementation.missing(request.profile) if name in asked]


def _concerned(chosen: list[Clause]) -> set[str]:
    """Return what clauses are about, most of each prefix: a block has one clause about the model that holds it."""
    components: dict[str, Counter[str]] = {}
    for clause in chosen:
        components.setdefault(clause.prefix, Counter())[clause.component] += 1
    return {counted.most_common(1)[0][0] for counted in components.values()}


class _Teller:
    """Puts results into the report, in the order of the law, and says how far the run is."""

    def __init__(
        self, report: Report, chosen: list[Clause], turns: list[Clause], on_progress: Callable[[Progress], None] | None
    ) -> None:
        self._report, self._on_progress = report, on_progress
        self._place = {clause.id: number for number, clause in enumerate(chosen)}
        self._chosen = turns
        self.begin()

    def begin(self) -> None:
        """Say which clause is next."""
        results = self._report.results
        if self._on_progress is None:
            return
        judged = {result.clause.id for result in results}
        clause = next((c for c in self._chosen if c.id not in judged), None)
        last = results[-1] if results else None
        if last is not None and self._report.hidden:
            last = veiled(last)
        named = (clause.id, clause.title) if clause else ("", "")
        self._on_progress(Progress(len(results), len(self._chosen), *named, last))

    def __call__(self, result: Result) -> None:
        self._report.results.append(result)
        self.begin()
        if len(self._report.results) == len(self._chosen):
            self._report.results.sort(key=lambda r: self._place[r.clause.id])


def _judge_all(
    request: RunRequest, implementation: Implementation, chosen: list[Clause], tell: _Teller, warm: Nursery | None
) -> None:
    if request.processes > 1 and request.isolation != "none":
        from conformkit.conformance.engine.parallel import judge_in_parallel

        another = partial(_another, request, warm, implementation)
        judge_in_parallel(
            chosen, implementation, another,
            processes=request.processes, seed=request.seed, profile=request.profile, tell=tell,
        )  # fmt: skip
        return
    judge = Judge(implementation, tests(request.profile), seed=request.seed)
    for clause in chosen:
        tell(judge.result(clause.id))


@contextmanager
def _another(request: RunRequest, warm: Nursery | None, first: Implementation) -> Iterator[Implementation]:
    with opened(request, warm, like=first) as (implementation, _):
        yield implementation
