"""One run: find the implementation, load it, judge clause after clause."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from conformkit.conformance.binding.config import Config, load_config
from conformkit.conformance.binding.exports import ExportMismatch
from conformkit.conformance.driver.errors import ImplementationFailure, IsolationUnavailable, WorkerLost
from conformkit.conformance.driver.location import Location, locate, mentions_torch
from conformkit.conformance.driver.session import InProcess, Limits, Session
from conformkit.conformance.driver.shared import SharedNursery
from conformkit.conformance.driver.warm import Nursery, nursery
from conformkit.conformance.hidden import veil, veiled
from conformkit.conformance.implementation import Implementation, OutOfTime
from conformkit.conformance.judge import Judge
from conformkit.conformance.registry import tests
from conformkit.conformance.results import Part, Report, Result, Verdict
from conformkit.spec.clauses import Clause, Level, select
from conformkit.spec.components import COMPONENTS

__all__ = ["IsolationUnavailable", "LoadFailure", "Progress", "RunRequest", "empty_report", "opened", "run"]


_ALONE = (
    "the sandbox shows what --impl names, the package that it is part of and what is installed, no file beside it;",
    "if files of one folder import each other, name the folder",
)


class LoadFailure(Exception):
    """The implementation could not be loaded or bound.

    `problem` is a sentence, `where` its own line at fault, `advice` what to do, `output` what it printed; `late`: it
    was not done in time.
    """

    def __init__(
        self, problem: str, *, where: str = "", advice: tuple[str, ...] = (), output: str = "", late: bool = False
    ) -> None:
        super().__init__(problem)
        self.problem, self.where, self.advice, self.output, self.late = problem, where, advice, output, late


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What to judge, and how."""

    impl: str
    profile: str = "core"
    level: Level = Level.MUST
    only: tuple[str, ...] = ()
    seed: int = 0
    isolation: str = "process"
    device: str = "cpu"
    config: Path | Config | None = None
    """What it declares; by default, what the file beside it says."""
    processes: int = 1
    limits: Limits = field(default_factory=Limits)
    seconds: float | None = None
    """How long the run may take; clauses that are left then are not run."""
    tries: int | None = None
    """How many places for the weights of a component are tried; by default, until the numbers fit."""
    diagnose: bool = True
    """Whether to look for the known mistakes behind what fails."""
    hints: int = 3
    """How much the report tells of them: 1 the symptom, 2 where to look as well, 3 the mistake."""
    unbound: bool = False
    """Whether weights whose places nobody can tell are no obstacle."""
    hidden: bool = False
    """Whether the report leaves out what could hold drawn or wanted numbers, and the seed."""
    apart: bool = False
    """Whether the implementation may not import the kit's own modules: what is handed in is nobody's own work then."""
    first: Collection[str] = ()
    """Clauses that are judged before the others."""
    folder: Path | None = None
    """Where relative paths and module names are looked up; the current folder by default."""


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
    chosen = _chosen(request)
    with _shared(request, early) as warm, opened(request, warm) as (implementation, location):
        report = empty_report(request, implementation, location)
        report.missing = _missing(request, implementation)
        turns = sorted(chosen, key=lambda clause: clause.id not in request.first)
        tell = _Teller(report, chosen, turns, on_progress)
        try:
            _judge_all(request, implementation, turns, tell, warm)
            report.complete = True
            if request.profile == "core":
                _name_undeclared(report, implementation)
            if request.diagnose and not report.conforms:
                report.parts = _located(report, implementation) if request.profile == "core" else {}
                own = warm if request.isolation == "process" else None
                report.results = _diagnosed(request, report, implementation, own, trusted)
        except OutOfTime:
            _give_up(request, chosen, report)
        except KeyboardInterrupt:
            pass  # the report stays marked incomplete
    if request.hidden:
        veil(report)
    report.seconds = time.perf_counter() - started
    return report


@contextmanager
def opened(
    request: RunRequest, warm: Nursery | None = None,
    *, components: Collection[str] | None = None, like: Implementation | None = None,
) -> Iterator[tuple[Implementation, Location]]:  # fmt: skip
    """Find, load and bind the implementation, or only some of its components; end its worker in any case.

    `warm` is the process that makes its worker, where several share one. `like` is the same implementation in another
    worker, which has been bound already.
    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    location, config = _found(request)
    implementation = Implementation(_session(request, location, config, warm), config, tries=request.tries)
    if request.seconds is not None:
        implementation.deadline = time.monotonic() + request.seconds
    try:
        tests(request.profile)  # imported while the worker imports its framework
        _load(implementation, request, components, like)
        yield implementation, location
    finally:
        implementation.close()


@contextmanager
def _shared(request: RunRequest, early: Nursery | None) -> Iterator[Nursery | None]:
    """One warm process for all workers of a run."""
    with ExitStack() as closing:
        if early is not None:
            closing.callback(early.close)
        if request.isolation == "none":
            yield None
            return
        location, config = _found(request)
        torch = _needs_torch(location, config)
        if early is None or early.torch != torch:
            early = _nursery(request, location, torch=torch)
            closing.callback(early.close)
        yield SharedNursery(early)


def _give_up(request: RunRequest, chosen: list[Clause], report: Report) -> None:
    """Say of the clauses that are left that there was no time; what was judged stays, in the order of the law."""
    judged = {result.clause.id: result for result in report.results}
    reason = f"the time for the whole run was up, {request.seconds:g} s"
    late = {c.id: Result(c, Verdict.NOT_RUN, reason=reason, tried=False) for c in chosen if c.id not in judged}
    report.results = [(judged | late)[clause.id] for clause in chosen]


def _name_undeclared(report: Report, implementation: Implementation) -> None:
    """Look for choices that were made but not declared, where something is wrong; no verdict depends on it."""
    if not report.conforms:
        from conformkit.conformance.undeclared import undeclared

        report.undeclared = undeclared(implementation, report.results)


def _located(report: Report, implementation: Implementation) -> dict[str, Part]:
    """Find the first part that differs of each composite; one whose choice is named already needs no part."""
    from conformkit.conformance.diagnosis.parts import locate

    named = {found.component for found in report.undeclared}
    found = locate(implementation, report.results, seed=report.seed)
    return {component: part for component, part in found.items() if component not in named}


def _chosen(request: RunRequest) -> list[Clause]:
    return list(select(request.only, request.profile))


def _found(request: RunRequest) -> tuple[Location, Config]:
    try:
        location = replace(locate(request.impl, request.folder), apart=request.apart)
    except FileNotFoundError as error:
        advice = ("give a module's name, a .py file or a folder; names are looked up in the current folder first",)
        raise LoadFailure(str(error), advice=advice) from None
    if isinstance(request.config, Config):
        return location, request.config
    if request.config is not None:
        return location, load_config(request.config)
    return location, load_config(_config_folders(location))


def _config_folders(location: Location) -> list[Path]:
    """Beside the implementation: in its folder, else next to it."""
    if location.path is None:
        return []
    own = location.path if location.path.is_dir() else location.path.parent
    return [own, own.parent] if location.path.is_dir() else [own]


def _session(request: RunRequest, location: Location, config: Config, warm: Nursery | None) -> Session | InProcess:
    if request.isolation == "none":
        return InProcess(location, config.framework, device=request.device)
    torch = warm.torch if warm is not None else _needs_torch(location, config)
    make = partial(_nursery, request, location, torch=torch)
    return Session(location, config.framework, request.limits, warm=warm, make=make, device=request.device)


def _nursery(request: RunRequest, location: Location, *, torch: bool) -> Nursery:
    """Start what makes workers in the isolation that was asked for, never in a lesser one."""
    if request.isolation == "sandbox":
        from conformkit.conformance.driver.sandbox import SandboxedProcess

        return SandboxedProcess(location, request.limits, torch=torch, workers=request.processes)
    return nursery(request.limits.threads, torch=torch)


def _needs_torch(location: Location, config: Config) -> bool:
    """Guess without importing anything; a wrong guess costs time, no more."""
    if config.framework is not None:
        return config.framework == "torch"
    named = any("torch" in (component.path or "") for component in config.components.values())
    return named or location.path is None or mentions_torch(location.path)


def _load(
    implementation: Implementation, request: RunRequest, components: Collection[str] | None, like: Implementation | None
) -> None:
    try:
        if like is None:
            implementation.load(components, tools=request.profile != "core")
        else:
            implementation.load_like(like)
    except ExportMismatch as mismatch:
        raise LoadFailure(str(mismatch), where=mismatch.source, advice=mismatch.advice) from None
    except ImplementationFailure as failure:
        output = implementation.session.take_output()
        problem = f"importing it raised {failure.type}: {failure.message}"
        if failure.kind == "exit":
            problem = f"importing it ended the process: {failure.message}"
        if failure.kind == "unsupported":
            problem = failure.message
        alone = request.isolation == "sandbox" and failure.type == "ModuleNotFoundError"
        raise LoadFailure(problem, where=failure.where, advice=_ALONE if alone else (), output=output) from None
    except WorkerLost as lost:
        output = implementation.session.take_output()
        raise LoadFailure(f"importing it failed: {lost.detail}", output=output, late=lost.kind == "timeout") from None
    _refuse_unbindable(implementation, request)


def _refuse_unbindable(implementation: Implementation, request: RunRequest) -> None:
    """Nothing of the contract, or as many numbers as the definition has in places that nobody can tell."""
    if request.profile != "core":
        _refuse_without_tools(implementation, request)
        return
    if not implementation.subjects() and not implementation.stubs:
        names = ", ".join(component.export for component in COMPONENTS.values())
        advice = [f"looked for {names}"]
        advice += [f"{name}: {error}" for name, error in implementation.errors.items()]
        advice.append("if yours are called otherwise, say where they are in conform.toml:")
        advice += ["    [components.MultiHeadAttention]", '    path = "yourpackage.module:YourClass"']
        raise LoadFailure(f"{request.impl} exports none of the contract's components", advice=tuple(advice))
    for bound in implementation.bounds():
        if bound.rules is None and bound.same_count and not request.unbound:
            name = bound.component.name
            lines = ("say where they are in conform.toml:", f"    [components.{name}.weights]")
            example = '    "name.of.yours" = "q.weight -> (h d) m"'
            problem = f"the weights of {name} could not be bound"
            raise LoadFailure(problem, where=bound.path, advice=(*bound.unbound, *lines, example))


def _refuse_without_tools(implementation: Implementation, request: RunRequest) -> None:
    """Nothing that the clauses of another profile than core are about."""
    if implementation.tools() or implementation.stubs or implementation.has("TinyTransformerLM"):
        return
    from conformkit.spec.tools import TOOLS

    advice = [f"looked for {', '.join(['TinyTransformerLM', *TOOLS])}"]
    advice += [f"{name}: {why}" for name, why in (implementation.errors | implementation.unfit).items()]
    advice.append("if yours are called otherwise, say where they are in conform.toml:")
    advice += ["    [components.get_batch]", '    path = "yourpackage.module:your_function"']
    raise LoadFailure(f"{request.impl} exports nothing of profile {request.profile}", advice=tuple(advice))


def empty_report(request: RunRequest, implementation: Implementation, location: Location) -> Report:
    """Return the report of a run that has judged nothing yet."""
    return Report(
        implementation=request.impl, location=str(location.path or location.name), framework=implementation.framework,
        profile=request.profile, level=request.level, seed=request.seed, isolation=request.isolation,
        device=request.device, variant=_variants(implementation), only=request.only, hints=request.hints,
        hidden=request.hidden, stubs=dict(implementation.stubs), sources=dict(implementation.sources),
        notes=[*_isolation_notes(implementation), *(note for b in implementation.bounds() for note in b.notes)],
    )  # fmt: skip


def _isolation_notes(implementation: Implementation) -> list[str]:
    return [implementation.session.note] if implementation.session.note else []


def _variants(implementation: Implementation) -> dict[str, object]:
    """Return the declared choices; one that holds for some components only is listed under `Component.choice`."""
    found: dict[str, object] = dict(implementation.config.variant)
    for bound in implementation.bounds():
        for name, value in bound.config.variant.items():
            found[f"{bound.component.name}.{name}"] = value
    return found


def _missing(request: RunRequest, implementation: Implementation) -> list[str]:
    """Return the required components that are lacking; with `only`, of those whose own clauses are asked for."""
    if request.profile != "core":
        return []
    asked = {prefix.partition("-")[0] for prefix in request.only}
    return [name for name in implementation.missing() if not asked or COMPONENTS[name].prefix in asked]


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
        from conformkit.conformance.parallel import judge_in_parallel

        another = partial(_another, request, warm, implementation)
        judge_in_parallel(
            chosen, implementation, another,
            processes=request.processes, seed=request.seed, profile=request.profile, tell=tell,
        )  # fmt: skip
        return
    judge = Judge(implementation, tests(request.profile), seed=request.seed)
    for clause in chosen:
        tell(judge.result(clause.id))


def _diagnosed(
    request: RunRequest, report: Report, implementation: Implementation, warm: Nursery | None,
    trusted: Callable[[], Nursery] | None,
) -> list[Result]:  # fmt: skip
    """Add the known mistakes that reproduce the failures. References with mistakes in them run in workers, too."""
    from conformkit.conformance.defects.witness import witness
    from conformkit.conformance.diagnosis.diagnose import diagnose

    variant = implementation.config.variant_for("TinyTransformerLM")
    with ExitStack() as closing:
        if warm is None or not warm.torch:
            warm = trusted() if trusted is not None else None
        if warm is None:
            warm = SharedNursery(nursery(request.limits.threads, torch=True))
            closing.callback(warm.close)
        judged_by = partial(
            witness, variant=variant, warm=warm, profile=request.profile, seed=request.seed,
            like=implementation.bounds(),
        )  # fmt: skip
        actual = variant.but(**{found.choice: found.actual for found in report.undeclared})
        otherwise = partial(judged_by, made=actual) if actual != variant else None
        return diagnose(report.results, variant, judged_by, otherwise)


@contextmanager
def _another(request: RunRequest, warm: Nursery | None, first: Implementation) -> Iterator[Implementation]:
    with opened(request, warm, like=first) as (implementation, _):
        yield implementation
