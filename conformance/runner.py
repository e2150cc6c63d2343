"""One run: find the implementation, load it, judge clause after clause."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import numpy as np

from conformkit.conformance.binding.lookups import targets
from conformkit.conformance.defects.killing_order import soonest_first
from conformkit.conformance.discovery.abilities import Beside, beside, profile_of, reported_as_found
from conformkit.conformance.discovery.completing import Completed, set_aside
from conformkit.conformance.discovery.drafting import definitions
from conformkit.conformance.discovery.opening import looked_through
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.location import Location
from conformkit.conformance.driver.scratch import sweep
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.boundary import OutOfTime
from conformkit.conformance.engine.collecting import Collector, FirstFailure, Progress
from conformkit.conformance.engine.declarations.excuses import excuses_of, left_out
from conformkit.conformance.engine.declarations.left_out import asked_for, concerned
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.finding import Located
from conformkit.conformance.engine.framework_guess import framework_notes
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.independent_repeat import Repeat, repeat_independently
from conformkit.conformance.engine.joining import joined
from conformkit.conformance.engine.judge import Judge, Thoroughly, Verdicts
from conformkit.conformance.engine.limit_notes import limit_notes
from conformkit.conformance.engine.loading import opened, prepared, refuse_empty, unbound
from conformkit.conformance.engine.needed import needed
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.engine.witness import Witness
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause, select
from conformkit.spec.profiles import named_profile

__all__ = ["NothingConcerned", "empty_report", "run"]


_STOPPED = "the run stopped at the first failure"
_FOR_THE_REPEAT = 60.0
"""Seconds that the repetition of calls has in grading, whatever the run has used up."""


class NothingConcerned(Exception):
    """No clause is about what was asked for: there is nothing to judge."""


@np.errstate(all="ignore")  # what an implementation returns may be anything
def run(
    request: RunRequest, on_progress: Callable[[Progress], None] | None = None,
    *, early: HeadStart | None = None, trusted: Callable[[], WorkerFactory] | None = None,
) -> Report:  # fmt: skip
    """Judge an implementation. If interrupted, return the results so far, marked incomplete.

    Several profiles, `lm,paths`, are judged one after the other and reported as one; those that `only` selects nothing
    of are left out. `early` is what was found and started before; its warm process is closed at the end, whether it
    fits or not. `trusted` gives one that outlives the run, for references with mistakes in them where they can't run
    beside the implementation.
    """
    if len(names := request.profile.split(",")) > 1:
        asked = [name for name in names if not request.only or select(request.only, name)]
        return _several(request, asked or names, on_progress, early, trusted)
    if request.widens and request.discover and not request.forbid_kit_imports and request.isolation != "none":
        return _widened(request, on_progress, early, trusted)
    return _one(request, on_progress, early, trusted)[0]


def _one(
    request: RunRequest, on_progress: Callable[[Progress], None] | None, early: HeadStart | None,
    trusted: Callable[[], WorkerFactory] | None,
) -> tuple[Report, Completed | None]:  # fmt: skip
    """Judge an implementation by one profile; return the report, and what was found and not declared."""
    started = time.perf_counter()
    sweep()
    chosen = _chosen(request, request.profile)
    complete = False
    wanted = needed(request, chosen)
    with (
        prepared(request, early) as (place, warm),
        looked_through(request, place, warm, wanted, _teller(on_progress)) as (located, found),
        opened(request, warm, located=located, components=wanted, repeated=_begins_to_repeat(request)) as (
            implementation,
            location,
        ),
    ):
        request, chosen = _about(request, chosen, implementation)
        begun = _with_found(empty_report(request, implementation, location), request, found)
        begun = _with_absences(begun, request, chosen, implementation, found)
        turns = soonest_first(chosen) if request.stop else chosen
        turns = sorted(turns, key=lambda clause: clause.id not in request.judge_first)
        collector = Collector(chosen, turns, on_progress, hidden=request.hidden)
        again = Repeat()
        try:
            implementation.witness = Witness(request.seed) if request.strict or request.forbid_kit_imports else None
            begun = replace(begun, late=_judge_turns(request, implementation, located, turns, collector, warm))
            begun = _with_absences(begun, request, chosen, implementation, found)
            if request.forbid_kit_imports or (request.strict and _conforms(begun, collector)):
                again = _repeated(request, implementation)
            implementation.witness = None
            collector.amend(list(again.changed(collector.in_order())))
            complete = not begun.late
            wrong = not _conforms(begun, collector)
            if wrong or (request.diagnose and any(result.verdict.red for result in collector.in_order())):
                undeclared = wrong and not (found and found.draft.proposals)  # else each choice was looked for
                _explain(request, implementation, located, warm, trusted, collector, undeclared=undeclared)
                begun = _with_absences(begun, request, chosen, implementation, found)
        except OutOfTime:
            limit = _time_limit(request)
            again = again if complete or not request.forbid_kit_imports else _repeated(request, implementation)
            collector.amend(list(again.changed(collector.in_order())))
            collector.add_not_run(limit)
            begun = replace(begun, late="" if complete else limit)
        except KeyboardInterrupt:
            pass  # the report stays marked incomplete
        if found is not None:
            begun = _set_aside(begun, found, collector)
        if again.note:
            collector.remark(again.note)
    report = collector.finish(begun, complete=complete, seconds=time.perf_counter() - started)
    return (report if found is None else found.located(report)), found


def _about(
    request: RunRequest, chosen: list[Clause], implementation: Implementation
) -> tuple[RunRequest, list[Clause]]:
    """Keep the clauses about some exports, where that is asked for. Raises NothingConcerned if there is none."""
    if request.about is None:
        return request, chosen
    names = set(request.about(implementation.sources))
    kept = [c for c in chosen if c.component in names | {"all"} or (c.generates and "generate" in names)]
    if not names or not kept:
        raise NothingConcerned
    return replace(request, only=tuple(sorted(names))), kept


def _judge_turns(
    request: RunRequest, implementation: Implementation, located: Located, turns: list[Clause],
    collector: Collector, warm: WorkerFactory | None,
) -> str:  # fmt: skip
    """Judge all that is asked for, and what blocks it; return why it ended early, if a failure was to end it."""
    binds, known = request.level.includes, request.accepted
    if request.stop:
        collector.stops = lambda r: r.verdict.red and binds(r.clause.level) and r.clause.id not in known
    try:
        _judge_all(request, implementation, located, turns, collector.add, warm)
        if request.only and request.discover and (causes := collector.blocking()):
            collector.widen(causes)
            _judge_all(request, implementation, located, causes, collector.add, warm)
    except FirstFailure:
        collector.add_not_run(_STOPPED)
        return _STOPPED
    finally:
        collector.stops = None
    return ""


def _teller(on_progress: Callable[[Progress], None] | None) -> Callable[[str], None]:
    """Return what hears, before anything is judged, what is being done."""
    return lambda words: on_progress(Progress(0, 0, words, "", None)) if on_progress is not None else None


def _with_found(begun: Report, request: RunRequest, found: Completed | None) -> Report:
    if found is None:
        return begun
    notes = [*found.notes(request), *begun.notes]
    return replace(begun, found=found.taken(), notes=notes, accounted=found.accounts_for_all(request))


def _set_aside(begun: Report, found: Completed, collector: Collector) -> Report:
    """Take verdicts away from components of which it is not certain that they are what they were taken for."""
    unclear = found.unclear(replace(begun, results=collector.explained()))
    collector.amend(set_aside(collector.explained(), unclear))
    return replace(begun, unusable={**begun.unusable, **unclear})


def _conforms(begun: Report, collector: Collector) -> bool:
    return replace(begun, results=collector.in_order(), complete=True).conforms


def _begins_to_repeat(request: RunRequest) -> bool:
    """Whether calls are repeated by a program that begins with the run: in a sandbox it begins where all is over."""
    return request.strict and request.isolation == "process" and not request.forbid_kit_imports


def _repeated(request: RunRequest, implementation: Implementation) -> Repeat:
    """Repeat calls in a program of its own.

    In grading this has a minute of its own, so that no submission escapes it by using up its time; what does not
    come back by then has earned nothing.
    """
    if request.isolation == "none":
        return Repeat()
    if not request.forbid_kit_imports:
        return repeat_independently(implementation, request.seed)
    implementation.deadline.leave(_FOR_THE_REPEAT)
    try:
        return repeat_independently(implementation, request.seed)
    except OutOfTime:
        sentence = "nothing came back in time"
        return Repeat({subject.name: sentence for subject in implementation.subjects()})


def _several(
    request: RunRequest, profiles: Sequence[str], on_progress: Callable[[Progress], None] | None,
    early: HeadStart | None, trusted: Callable[[], WorkerFactory] | None,
) -> Report:  # fmt: skip
    """Judge one profile after the other, in forks of the same warm process, and report them as one."""
    with _lent(early) as kept:
        asked = [replace(request, profile=name, widens=False) for name in profiles]
        reports = _in_turn([], asked, partial(_reported, on_progress, kept, trusted), time.perf_counter())
    return joined(request.profile, reports)


def _widened(
    request: RunRequest, on_progress: Callable[[Progress], None] | None, early: HeadStart | None,
    trusted: Callable[[], WorkerFactory] | None,
) -> Report:  # fmt: skip
    """Judge by the profile that fits what is there, then by others what they have clauses about; report it as one."""
    started = time.perf_counter()
    with _lent(early) as kept:
        _teller(on_progress)("importing")
        first = replace(request, profile=_fitting(request, kept))
        report, found = _one(first, on_progress, kept, trusted)
        more = (found.beside if found is not None else _declared(request, kept)) if report.complete else ()
        asked = [
            replace(request, profile=one.profile, among=one.clauses, config=one.config, discover=False, widens=False)
            for one in more
        ]
        more = [one for one, own in zip(more, asked, strict=True) if _chosen(own, own.profile)]
        asked = [own for own in asked if _chosen(own, own.profile)]
        reports = _in_turn([report], asked, partial(_reported, on_progress, kept, trusted), started)
    parts = [reports[0], *(reported_as_found(part, one) for part, one in zip(reports[1:], more, strict=False))]
    return joined(",".join(part.profile for part in parts), parts) if parts[1:] else report


def _fitting(request: RunRequest, early: HeadStart) -> str:
    """Return the profile of what an implementation defines; what a file declares is judged by core."""
    with prepared(request, _borrowed(early)) as (place, warm):
        if place.config.path is not None:
            return request.profile
        with unbound(request, warm, place) as (implementation, location):
            refuse_empty(request, location)
            return profile_of(definitions(implementation))


def _declared(request: RunRequest, early: HeadStart) -> Sequence[Beside]:
    """Return what further profiles judge of code whose file says where its parts are."""
    with prepared(request, _borrowed(early)) as (place, warm):
        taken = {name: path for name, path in targets(place.config).items() if path is not None}
        if not taken:
            return ()
        with unbound(request, warm, place) as (implementation, _):
            more = beside(implementation, definitions(implementation), place.config, taken)
            return [replace(one, lookalikes={}) for one in more]  # a file has said what is to be judged


def _reported(
    on_progress: Callable[[Progress], None] | None, early: HeadStart, trusted: Callable[[], WorkerFactory] | None,
    request: RunRequest,
) -> Report:  # fmt: skip
    return _one(request, on_progress, _borrowed(early), trusted)[0]


def _borrowed(early: HeadStart) -> HeadStart:
    """Return what was started, to be used by one run of several: closing it does nothing."""
    return HeadStart(early.location, LentFactory(early.warm)) if early.warm is not None else early


@contextmanager
def _lent(early: HeadStart | None) -> Iterator[HeadStart]:
    """Yield what was started for several runs in turn; it ends with the last."""
    kept = early or HeadStart()
    try:
        yield _borrowed(kept)
    finally:
        kept.close()


def _in_turn(
    reports: Sequence[Report], requests: Sequence[RunRequest], judge: Callable[[RunRequest], Report], started: float
) -> list[Report]:
    """Return these reports and those of further requests, one after the other, within the time of the first."""
    found = list(reports)
    for request in requests:
        left = None if request.seconds is None else request.seconds - (time.perf_counter() - started)
        if found and left is not None and left <= 0:
            found.append(_out_of_time(found[-1], request, request.profile))
        else:
            found.append(judge(replace(request, seconds=left, limit=request.seconds)))
        if not found[-1].complete and (request.stop or not found[-1].late):
            break
    return found


def _chosen(request: RunRequest, profile: str) -> list[Clause]:
    left_out = {clause.id for clause in select(request.without)} if request.without else set()
    chosen = [clause for clause in select(request.only, profile) if clause.id not in left_out]
    return [clause for clause in chosen if request.among is None or clause.id in request.among]


def _time_limit(request: RunRequest) -> str:
    """Return what ended the run, and what gives it more time; a student has no say in a time limit of grading."""
    seconds = request.limit or request.seconds or 0.0
    more = "" if request.forbid_kit_imports else f"; for more time, add --seconds {2 * seconds:g}"
    return f"the time limit of the run, {seconds:g} s, was reached{more}"


def _out_of_time(begun: Report, request: RunRequest, profile: str) -> Report:
    """Return the report of a profile that was not begun."""
    late = _time_limit(request)
    results = [Result(clause, Verdict.NOT_RUN, reason=late, tried=False) for clause in _chosen(request, profile)]
    return replace(begun, results=results, undeclared=(), parts={}, seconds=0.0, complete=False, late=late)


def _explain(
    request: RunRequest, implementation: Implementation, located: Located, warm: WorkerFactory | None,
    trusted: Callable[[], WorkerFactory] | None, collector: Collector, *, undeclared: bool,
) -> None:  # fmt: skip
    """Look for the causes of what is red, `undeclared` choices among them. What is unclear leaves verdicts alone."""
    from conformkit.conformance.diagnosis.causes import CausesUnknownError, explained

    judge_again = partial(_judged_again, request, implementation, located, warm)
    own = warm if request.isolation == "process" else None
    try:
        for results, causes in explained(
            request, collector.in_order(), implementation, judge_again, own, trusted, undeclared=undeclared
        ):
            collector.amend(results)
            collector.explain(causes)
    except CausesUnknownError as trouble:
        collector.remark(f"the causes of the failures could not be looked for: {trouble}")


def empty_report(request: RunRequest, implementation: Implementation, location: Location) -> Report:
    """Return the report of a run before the first result."""
    return Report(
        implementation=request.impl, location=str(location.path or location.name), framework=implementation.framework,
        **request.asked(), variant=_variants(implementation),
        unusable=dict(implementation.unusable), skipped=implementation.config.skipped(),
        excuses=excuses_of(implementation), date=datetime.now(UTC).date().isoformat() if request.drawn else "",
        stubs=dict(implementation.stubs), sources=dict(implementation.sources),
        notes=[
            *_isolation_notes(implementation), *implementation.loading_notes, *_accuracy_notes(implementation),
            *framework_notes(implementation, location), *limit_notes(implementation.bounds()),
            *(note for b in implementation.bounds() for note in b.notes),
            *left_out(implementation),
        ],
    )  # fmt: skip


def _isolation_notes(implementation: Implementation) -> list[str]:
    return [implementation.session.note] if implementation.session.note else []


def _accuracy_notes(implementation: Implementation) -> list[str]:
    form, allowed = implementation.accuracy("all")
    return [f"judged in {form}: numbers may be off by {allowed:g} of the largest, in each component"] if form else []


def _variants(implementation: Implementation) -> dict[str, object]:
    """Return the declared choices; a choice of a single component is listed as `Component.choice`."""
    found: dict[str, object] = dict(implementation.config.variant)
    for bound in implementation.bounds():
        for name, value in bound.config.variant.items():
            found[f"{bound.component.name}.{name}"] = value
    return found


def _with_absences(
    begun: Report, request: RunRequest, chosen: list[Clause], implementation: Implementation, found: Completed | None,
) -> Report:  # fmt: skip
    """Add what is missing, cannot be judged or is left out, of what was asked for.

    What is required, stands there and is built or called otherwise is not missing: it cannot be judged.
    """
    missing = _missing(request, chosen, implementation)
    otherwise = {name: implementation.unfit[name] for name in missing if name in implementation.unfit}
    unclear = {name: why for name, why in begun.unusable.items() if name not in implementation.unusable}
    unusable = {**unclear, **otherwise, **_unusable(chosen, implementation)}
    absent = [name for name in missing if name not in unusable]
    if found is not None:
        unusable |= found.absent(absent, asked=bool(request.only)) | found.called_otherwise(request)
    return replace(
        begun, missing=[] if found is not None else absent, unusable=unusable,
        skipped=_skipped(chosen, implementation),
    )  # fmt: skip


def _missing(request: RunRequest, chosen: list[Clause], implementation: Implementation) -> list[str]:
    """Return the missing required components; with `only`, those that its clauses are about.

    A part that is judged inside a whole is missing only where its own clauses are asked for.
    """
    if not named_profile(request.profile).has_parts:
        return []
    missing = implementation.missing(request.profile)
    if request.only:
        return [name for name in missing if name in concerned(chosen)]
    asked = asked_for(request)
    return [name for name in missing if name in asked and not implementation.judged_inside(name)]


def _unusable(chosen: list[Clause], implementation: Implementation) -> dict[str, Unusable]:
    """Return what cannot be judged, of what the selected clauses are about."""
    about = {clause.component for clause in chosen}
    return {
        name: why for name, why in implementation.unusable.items() if name.partition(".")[0] in about or "all" in about
    }


def _skipped(chosen: list[Clause], implementation: Implementation) -> list[str]:
    about = {clause.component for clause in chosen}
    return [name for name in implementation.config.skipped() if name in about]


def _judge_all(
    request: RunRequest, implementation: Implementation, located: Located, turns: list[Clause],
    tell: Callable[[Result], None], warm: WorkerFactory | None, known: Sequence[Result] = (),
) -> None:  # fmt: skip
    if request.processes > 1 and request.isolation != "none" and not request.thorough:
        from conformkit.conformance.engine.parallel import judge_in_parallel

        judge_in_parallel(
            turns, implementation, partial(_another, request, warm, located, implementation),
            processes=request.processes, seed=request.seed, profile=request.profile, tell=tell, known=known,
            in_order=request.stop,
        )  # fmt: skip
        return
    judge = Judge(
        implementation, tests(request.profile), seed=request.seed, verdicts=Verdicts.of(known),
        thoroughly=_thoroughly(request, located.location),
    )  # fmt: skip
    for clause in turns:
        tell(judge.result(clause.id))


def _judged_again(
    request: RunRequest, implementation: Implementation, located: Located, warm: WorkerFactory | None,
    clauses: Sequence[Clause], known: Sequence[Result],
) -> list[Result]:  # fmt: skip
    """Return the results on some clauses, those on the others being known."""
    results: list[Result] = []
    _judge_all(request, implementation, located, list(clauses), results.append, warm, known)
    return results


def _thoroughly(request: RunRequest, location: Location) -> Thoroughly | None:
    """Return what runs a test with examples of hypothesis; examples are kept unless draws are hidden."""
    if not request.thorough:
        return None
    from conformkit.conformance.engine.thorough import DRIVEN, Try, database, seek

    def thoroughly(clause: Clause, run: Try, forms: tuple[str, ...]) -> None:
        if DRIVEN.intersection(clause.evidence):
            stored = None if request.hidden else database(str(location.path or location.name), clause)
            seek(clause, run, forms, examples=request.thorough, start=request.seed, stored=stored)

    return thoroughly


@contextmanager
def _another(
    request: RunRequest, warm: WorkerFactory | None, located: Located, first: Implementation
) -> Iterator[Implementation]:
    with opened(request, warm, located=located, like=first) as (implementation, _):
        yield implementation
