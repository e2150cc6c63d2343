"""From a request to an implementation that is loaded and bound, in a separate worker."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.exports import ExportMismatch
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.client.session import InProcess, Session
from conformkit.conformance.driver.errors import DeviceUnavailable, ImplementationFailure, WorkerLost
from conformkit.conformance.driver.location import Location, sources
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.driver.worker.stand_ins import distribution_of
from conformkit.conformance.engine.ambiguous_folder import obstacle
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT, OutOfTime, incomprehensible
from conformkit.conformance.engine.deadline import Deadline
from conformkit.conformance.engine.declarations.left_out import left_unjudged
from conformkit.conformance.engine.declarations.unsupported_choices import refuse_unexpressed
from conformkit.conformance.engine.finding import LoadFailure, Located, find
from conformkit.conformance.engine.framework_guess import other_framework
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.probing.known import Known
from conformkit.conformance.suite.registry import tests
from conformkit.conformance.text import INSTALL_TORCH
from conformkit.spec.clauses import clauses_of, select
from conformkit.spec.components import COMPONENTS, components_of
from conformkit.spec.profiles import named_profile

__all__ = ["OWN_WORDS", "imported", "opened", "prepared", "refuse_empty", "unbound"]

_ALONE = (
    "the sandbox shows what --impl names, its package and what is installed, but no neighboring files;",
    "if files of one folder import each other, name the folder",
)


_NOTEBOOK = (
    "judge what its cells define, in the notebook itself: from conformkit.conformance import check; check(MyClass);",
    "or write them into a .py file: jupyter nbconvert --to script",
)
_WITHOUT_ONLY = "it may be inside another part, as attention is inside heads: without --only, what is there is judged"
_MAGIC = (
    "these are commands of a notebook, which plain Python does not know: delete the lines with `get_ipython()` that",
    "exporting it has left",
)
_GUARD = (
    'what runs a training or an example belongs under `if __name__ == "__main__":`, at the end of the file, so that',
    "importing the file only defines classes and functions",
)
_NO_GHOST = "noghost"
"""Type of the failure where this torch has no device that exists in name only."""
_OTHER_TORCH = "install a torch that has them (2.13 has), or judge on the cpu: leave out --device"
_STRICT = frozenset({"defaults of tools"})
"""What strict runs leave out of declarations: constants of tools, which take them for what they do by default."""
OWN_WORDS = "load"
"""Type of a failure whose message from the worker is a complete sentence."""


@contextmanager
def prepared(request: RunRequest, start: HeadStart | None = None) -> Iterator[tuple[Located, WorkerFactory | None]]:
    """Find the implementation, and yield it with one warm process for all workers of a run; none without isolation.

    `start` is what there is already: it is used where it fits, and closed in any case.
    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    start = start or HeadStart()
    with ExitStack() as closing:
        closing.callback(start.close)
        located = find(request, start.location)
        if request.isolation == "none":
            yield located, None
            return
        warm, torch = start.warm, located.needs_torch()
        if warm is None or warm.torch != torch or not warm.alive:
            warm = _factory(request, located.location, torch=torch)
            closing.callback(warm.close)
        shared = SharedFactory(warm, partial(_factory, request, located.location, torch=torch))
        closing.callback(shared.close)
        yield located, shared


@contextmanager
def opened(
    request: RunRequest, warm: WorkerFactory | None = None,
    *, located: Located | None = None, components: Collection[str] | None = None, like: Implementation | None = None,
    known: Mapping[str, Known] | None = None, repeated: bool = False,
) -> Iterator[tuple[Implementation, Location]]:  # fmt: skip
    """Load and bind the implementation, or only some of its components; end its worker in any case.

    `warm` is the process that makes its worker, where several share one. `located` is where it is, when that is known.
    `like` is the same implementation in another worker, which has been bound already. `known` is what was learned of
    the code of which it is a changed copy. `repeated`: a program of its own will be asked for, and begins already.
    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    with _in_worker(request, warm, located) as (implementation, location):
        implementation.known = known or {}
        if request.seconds is not None and like is None:
            implementation.deadline = Deadline.after(request.seconds, patient=request.pause_deadline_when_busy)
        if like is None:
            _refuse_several(request, location, implementation.config)
            refuse_unexpressed(implementation.config, request.profile)
        tests(request.profile)  # imported while the worker imports its framework
        if repeated and isinstance(implementation.session, Session):
            implementation.session.begin_apart()
        _load(implementation, request, components, like)
        if like is None:
            implementation.unusable.update(left_unjudged(implementation, request))
        _refuse_unbindable(implementation, request, location)
        yield implementation, location


@contextmanager
def imported(request: RunRequest, start: HeadStart | None = None) -> Iterator[tuple[Implementation, Location]]:
    """Find the implementation and import it without binding anything; end its worker in any case.

    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    start = start or HeadStart()
    with _in_worker(request, start.warm, find(request, start.location)) as (implementation, location):
        with _explained(implementation, request):
            implementation.start()
        yield implementation, location


@contextmanager
def unbound(
    request: RunRequest, warm: WorkerFactory | None, located: Located
) -> Iterator[tuple[Implementation, Location]]:
    """Import what was found in a worker of its own, without binding anything; end the worker in any case.

    What is looked for in it meanwhile has as much time as a run. Raises LoadFailure, IsolationUnavailable.
    """
    with _in_worker(request, warm, located) as (implementation, location):
        if request.seconds is not None:
            implementation.deadline = Deadline.after(request.seconds, patient=request.pause_deadline_when_busy)
        _refuse_several(request, location, implementation.config)
        refuse_unexpressed(implementation.config, request.profile)
        tests(request.profile)  # imported while the worker imports its framework
        with _explained(implementation, request):
            implementation.start()
        try:
            yield implementation, location
        except OutOfTime:
            raise _too_late(request) from None


def _too_late(request: RunRequest) -> LoadFailure:
    """Return the failure of code that takes longer to load than a run may; in grading, nobody can add time."""
    seconds = request.limit or request.seconds or 0.0
    advice = () if request.forbid_kit_imports else (f"for more time, add --seconds {2 * seconds:g}",)
    return LoadFailure(f"it could not be loaded and bound within {seconds:g} s", advice=advice, late=True)


@contextmanager
def _in_worker(
    request: RunRequest, warm: WorkerFactory | None, located: Located | None
) -> Iterator[tuple[Implementation, Location]]:
    """Ask for a worker that has not imported the implementation yet; end it in any case."""
    located = located or find(request)
    refused = located.config.refused | (_STRICT if request.strict else frozenset())
    config = replace(located.config, refused=refused)
    implementation = Implementation(_session(request, located, warm), config, tries=request.tries)
    implementation.silence, implementation.loading_notes = located.silence, located.notes
    try:
        yield implementation, located.location
    finally:
        implementation.close()


def _session(request: RunRequest, located: Located, warm: WorkerFactory | None) -> Session | InProcess:
    location, framework = located.location, located.config.framework
    if request.isolation == "none":
        return InProcess(location, framework, device=request.device)
    torch = warm.torch if warm is not None else located.needs_torch()
    make = partial(_factory, request, location, torch=torch)
    fresh = partial(_factory, request, location, torch=False) if request.isolation == "sandbox" else None
    return Session(location, framework, request.limits, warm=warm, make=make, device=request.device, fresh=fresh)


def _factory(request: RunRequest, location: Location, *, torch: bool) -> WorkerFactory:
    """Start the process that makes workers, in the requested isolation and never in a weaker one."""
    if request.isolation == "sandbox":
        from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess

        return SandboxedProcess(location, request.limits, torch=torch, workers=request.processes)
    return worker_factory(request.limits.threads, torch=torch)


def _load(
    implementation: Implementation, request: RunRequest, components: Collection[str] | None, like: Implementation | None
) -> None:
    with _explained(implementation, request):
        if like is None:
            implementation.load(components, profile=request.profile)
        else:
            implementation.load_like(like)


@contextmanager
def _explained(implementation: Implementation, request: RunRequest) -> Iterator[None]:
    """Turn what an import raised into a LoadFailure with advice."""
    try:
        yield
    except ExportMismatch as mismatch:
        nowhere = implementation.config.path is None
        raise LoadFailure(str(mismatch), where=mismatch.source, advice=mismatch.advice, nowhere=nowhere) from None
    except ImplementationFailure as failure:
        if failure.type == _NO_GHOST:
            raise DeviceUnavailable(failure.message, _OTHER_TORCH) from None
        output, advice = implementation.session.take_output(), _advice(request, failure)
        raise LoadFailure(_problem(failure), where=failure.where, advice=advice, output=output) from None
    except WorkerLost as lost:
        output = implementation.session.take_output()
        problem, late = f"importing it failed: {lost.detail}", lost.kind == "timeout"
        if late:
            seconds = implementation.session.limits.load_seconds
            problem = f"import took over {seconds:.3g} s; does it train at import?"
        raise LoadFailure(problem, advice=_GUARD if late else (), output=output, late=late) from None
    except OutOfTime:
        raise _too_late(request) from None
    except (LoadFailure, *NOT_ITS_FAULT):
        raise
    except Exception as trouble:
        problem = f"what it says about itself cannot be interpreted: {incomprehensible(trouble)}"
        raise LoadFailure(problem, output=implementation.session.take_output()) from trouble


def _problem(failure: ImplementationFailure) -> str:
    if failure.kind == "unsupported" or failure.type == OWN_WORDS:
        return failure.message
    if failure.kind == "exit":
        return f"importing it ended the process: {failure.message}"
    return f"importing it raised {failure.type}: {failure.message}"


def _advice(request: RunRequest, failure: ImplementationFailure) -> tuple[str, ...]:
    if failure.type == "NameError" and "get_ipython" in failure.message:
        return _MAGIC
    if failure.type == "ModuleNotFoundError" and failure.message == "No module named 'torch'":
        return (INSTALL_TORCH,)
    if request.isolation == "sandbox" and failure.type == "ModuleNotFoundError":
        return _ALONE
    if failure.type == "ModuleNotFoundError" and (name := re.search(r"No module named '(\w+)", failure.message)):
        return (f"if it is a library, install it: pip install {distribution_of(name[1])}",)
    return _NOTEBOOK if request.impl.endswith(".ipynb") else ()


def _refuse_unbindable(implementation: Implementation, request: RunRequest, location: Location) -> None:
    """Refuse an implementation without anything to judge."""
    config = implementation.config
    named = config.module is not None or any(component.path for component in config.components.values())
    if not named:
        refuse_empty(request, location)
    _refuse_formats(implementation)
    if named_profile(request.profile).has_tools:
        _refuse_without_tools(implementation, request)
    if implementation.subjects() or implementation.stubs or implementation.tools():
        return
    if implementation.unusable:
        raise _unusable(implementation)
    if named_profile(request.profile).has_parts and not implementation.exported:
        about = {clause.component for clause in select(request.only, request.profile)}
        wanted = [component for component in COMPONENTS.values() if component.name in about] or COMPONENTS.values()
        advice = [f"looked for {', '.join(component.export for component in wanted)}"]
        advice += [_WITHOUT_ONLY] if request.only else []
        advice += [f"{name}: {error}" for name, error in implementation.errors.items()]
        advice.append(_otherwise(request))
        advice += ["    [components.MultiHeadAttention]", '    path = "yourpackage.module:YourClass"']
        raise LoadFailure(
            f"{request.impl} exports none of the contract's components", advice=tuple(advice), nowhere=not named
        )


def _unusable(implementation: Implementation) -> LoadFailure:
    """Return the failure where nothing that is there or declared can be judged: the first of them tells why."""
    first, *others = implementation.unusable.values()
    more = [f"{one.problem} ({one.where})" if one.where else one.problem for one in others]
    return LoadFailure(first.problem, where=first.where, advice=(*first.advice, *more))


def refuse_empty(request: RunRequest, location: Location) -> None:
    """Raise LoadFailure if there is no code at all."""
    if location.path is not None and next(sources(location.path), None) is None:
        begin = "conform init NAME writes a package of stubs to start with"
        raise LoadFailure(f"there is no Python file in {request.impl}", advice=(begin,))


def _otherwise(request: RunRequest) -> str:
    """Introduce the lines that declare other names; mention `conform adapt`."""
    named = named_profile(request.profile).option if named_profile(request.profile).searched else []
    words = ["conform", "adapt", request.impl, *named]
    return f"if yours are called otherwise, say where they are in conform.toml ({shlex.join(words)} drafts it):"


def _refuse_several(request: RunRequest, location: Location, config: Config) -> None:
    """Refuse a folder that holds several implementations, before any of their code runs.

    In a submission the choice was made before, and so was what a conform.toml names.
    """
    if request.forbid_kit_imports or config.module is not None:
        return
    wanted = [c.export for c in components_of(request.profile).values() if config.component(c.name).path is None]
    if problem := obstacle(location, wanted):
        advice = "name the folder or package that is meant, or say in conform.toml where each component is"
        raise LoadFailure(problem, advice=(advice,))


def _refuse_formats(implementation: Implementation) -> None:
    """Refuse number formats that the framework lacks: every call would raise the same error.

    Every framework has the default formats; code that refuses those is judged.
    """
    if set(implementation.config.dtypes) <= set(Config().dtypes):
        return
    for bound in implementation.bounds():
        failure = bound.failure
        if isinstance(failure, ImplementationFailure) and failure.kind == "unsupported":
            advice = ["name a format that it has with --dtype, or in conform.toml under dtypes"]
            if implementation.config.framework is None and implementation.framework == "numpy":
                advice.append(other_framework("numpy"))
            raise LoadFailure(
                f"with dtypes {', '.join(implementation.config.dtypes)}: {failure.message}", advice=tuple(advice)
            )


def _refuse_without_tools(implementation: Implementation, request: RunRequest) -> None:
    """Refuse an implementation that exports nothing of a profile other than core."""
    about = {clause.component for clause in clauses_of(request.profile).values()}
    if implementation.tools() or implementation.stubs or any(implementation.has(name) for name in about):
        return
    from conformkit.spec.tools import tools_of

    parts = [name for name in components_of(request.profile) if name in about]
    looked_for = [*parts, *tools_of(request.profile)]
    advice = [f"looked for {', '.join(looked_for)}"]
    unfit = {name: why.problem for name, why in implementation.unfit.items()}
    advice += [f"{name}: {why}" for name, why in (implementation.errors | unfit).items()]
    advice.append(_otherwise(request))
    example = "get_batch" if "get_batch" in looked_for else looked_for[0]
    advice += [f"    [components.{example}]", '    path = "yourpackage.module:name"']
    problem = f"{request.impl} exports nothing of profile {request.profile}"
    raise LoadFailure(problem, advice=tuple(advice), nowhere=implementation.config.path is None)
