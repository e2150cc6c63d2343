"""From a request to an implementation that is found, loaded and bound, in a worker of its own."""

from __future__ import annotations

import shlex
import time
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from conformkit.conformance.binding.config import Config, load_config
from conformkit.conformance.binding.exports import ExportMismatch
from conformkit.conformance.driver.client.session import InProcess, Session
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.driver.location import Location, locate, mentions_torch, sources
from conformkit.conformance.driver.spawn.shared import SharedNursery
from conformkit.conformance.driver.spawn.warm import Nursery, nursery
from conformkit.conformance.engine.ambiguous_folder import obstacle
from conformkit.conformance.engine.framework_guess import other_framework
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import clauses_of
from conformkit.spec.components import COMPONENTS, components_of

__all__ = ["OWN_WORDS", "WHERE_NAMES_ARE", "LoadFailure", "imported", "opened", "refuse_empty", "shared_nursery"]

_ALONE = (
    "the sandbox shows what --impl names, the package that it is part of and what is installed, no file beside it;",
    "if files of one folder import each other, name the folder",
)


_NOTEBOOK = (
    "judge what its cells define in the notebook itself: from conformkit.conformance import check; check(MyClass);",
    "or write them into a .py file: jupyter nbconvert --to script",
)
WHERE_NAMES_ARE = "give a module's name, a .py file or a folder; names are looked up in the current folder first"
OWN_WORDS = "load"
"""The type of a failure that the worker tells in a sentence of its own."""


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
    with _in_worker(request, warm) as (implementation, location):
        if request.seconds is not None:
            implementation.deadline = time.monotonic() + request.seconds
        if like is None:
            _refuse_several(request, location, implementation.config)
        tests(request.profile)  # imported while the worker imports its framework
        _load(implementation, request, components, like)
        _refuse_unbindable(implementation, request, location)
        yield implementation, location


@contextmanager
def imported(request: RunRequest, warm: Nursery | None = None) -> Iterator[tuple[Implementation, Location]]:
    """Find the implementation and import it, binding nothing; end its worker in any case.

    Raises LoadFailure, ConfigError, IsolationUnavailable.
    """
    with _in_worker(request, warm) as (implementation, location):
        with _explained(implementation, request):
            implementation.start()
        yield implementation, location


@contextmanager
def _in_worker(request: RunRequest, warm: Nursery | None) -> Iterator[tuple[Implementation, Location]]:
    """Ask for a worker, which imports nothing of the implementation yet; end it in any case."""
    location, config = _found(request)
    implementation = Implementation(_session(request, location, config, warm), config, tries=request.tries)
    try:
        yield implementation, location
    finally:
        implementation.close()


@contextmanager
def shared_nursery(request: RunRequest, early: Nursery | None) -> Iterator[Nursery | None]:
    """One warm process for all workers of a run."""
    with ExitStack() as closing:
        if early is not None:
            closing.callback(early.close)
        if request.isolation == "none":
            yield None
            return
        location, config = _found(request)
        torch = _needs_torch(location, config)
        if early is None or early.torch != torch or not early.alive:
            early = _nursery(request, location, torch=torch)
            closing.callback(early.close)
        yield SharedNursery(early)


def _found(request: RunRequest) -> tuple[Location, Config]:
    """Return where it is, and what is declared of it. Raises LoadFailure, ConfigError."""
    try:
        location = replace(locate(request.impl, request.folder), apart=request.apart)
    except FileNotFoundError as error:
        raise LoadFailure(str(error), advice=(WHERE_NAMES_ARE,)) from None
    config = _declared(request, location)
    return location, replace(config, dtypes=(request.dtype,)) if request.dtype else config


def _declared(request: RunRequest, location: Location) -> Config:
    if isinstance(request.config, Config):
        return request.config
    return load_config(request.config if request.config is not None else _config_folders(location))


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
        from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess

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
    with _explained(implementation, request):
        if like is None:
            implementation.load(components, profile=request.profile)
        else:
            implementation.load_like(like)


@contextmanager
def _explained(implementation: Implementation, request: RunRequest) -> Iterator[None]:
    """Say of what an import raised what the reader can do."""
    try:
        yield
    except ExportMismatch as mismatch:
        raise LoadFailure(str(mismatch), where=mismatch.source, advice=mismatch.advice) from None
    except ImplementationFailure as failure:
        output = implementation.session.take_output()
        problem = f"importing it raised {failure.type}: {failure.message}"
        if failure.kind == "exit":
            problem = f"importing it ended the process: {failure.message}"
        if failure.kind == "unsupported" or failure.type == OWN_WORDS:
            problem = failure.message
        raise LoadFailure(problem, where=failure.where, advice=_advice(request, failure), output=output) from None
    except WorkerLost as lost:
        output = implementation.session.take_output()
        raise LoadFailure(f"importing it failed: {lost.detail}", output=output, late=lost.kind == "timeout") from None


def _advice(request: RunRequest, failure: ImplementationFailure) -> tuple[str, ...]:
    if request.isolation == "sandbox" and failure.type == "ModuleNotFoundError":
        return _ALONE
    return _NOTEBOOK if request.impl.endswith(".ipynb") else ()


def _refuse_unbindable(implementation: Implementation, request: RunRequest, location: Location) -> None:
    """Nothing of the contract, or as many numbers as the definition has in places that nobody can tell."""
    config = implementation.config
    named = config.module is not None or any(component.path for component in config.components.values())
    if not named:
        refuse_empty(request, location)
    _refuse_formats(implementation)
    if request.profile != "core":
        _refuse_without_tools(implementation, request)
    if request.profile == "lm":
        return
    if not implementation.subjects() and not implementation.stubs and not implementation.tools():
        names = ", ".join(component.export for component in COMPONENTS.values())
        advice = [f"looked for {names}"]
        advice += [f"{name}: {error}" for name, error in implementation.errors.items()]
        advice.append(_otherwise(request))
        advice += ["    [components.MultiHeadAttention]", '    path = "yourpackage.module:YourClass"']
        raise LoadFailure(f"{request.impl} exports none of the contract's components", advice=tuple(advice))
    for bound in implementation.bounds():
        if bound.rules is None and bound.same_count and not request.unbound:
            name = bound.component.name
            lines = ("say where they are in conform.toml:", f"    [components.{name}.weights]")
            example = '    "name.of.yours" = "q.weight -> (h d) m"'
            problem = f"the weights of {name} could not be bound"
            raise LoadFailure(problem, where=bound.path, advice=(*bound.unbound, *lines, example))


def refuse_empty(request: RunRequest, location: Location) -> None:
    """Raise LoadFailure where there is no code at all."""
    if location.path is not None and next(sources(location.path), None) is None:
        begin = "conform init NAME writes a package of stubs to begin with"
        raise LoadFailure(f"there is no Python file in {request.impl}", advice=(begin,))


def _otherwise(request: RunRequest) -> str:
    """Say who finds other names out, before the lines that declare them; of profile lm nobody does."""
    words = ["conform", "adapt", request.impl, *(["--profile", "seq2seq"] if request.profile == "seq2seq" else [])]
    drafts = f" ({shlex.join(words)} drafts it)" if request.profile != "lm" else ""
    return f"if yours are called otherwise, say where they are in conform.toml{drafts}:"


def _refuse_several(request: RunRequest, location: Location, config: Config) -> None:
    """Refuse a folder in which several implementations lie, before any code of them runs.

    What is handed in has been chosen already, and so has what a conform.toml names.
    """
    if request.apart or config.module is not None:
        return
    wanted = [c.export for c in components_of(request.profile).values() if config.component(c.name).path is None]
    if problem := obstacle(location, wanted):
        advice = "name the folder or package that is meant, or say in conform.toml where each component is"
        raise LoadFailure(problem, advice=(advice,))


def _refuse_formats(implementation: Implementation) -> None:
    """Refuse number formats of which the framework has none: whatever takes an array would raise the same.

    Each framework has those that are asked for by default, so code that says otherwise there is judged.
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
                f"it is asked for in {', '.join(implementation.config.dtypes)}: {failure.message}", advice=tuple(advice)
            )


def _refuse_without_tools(implementation: Implementation, request: RunRequest) -> None:
    """Nothing that the clauses of another profile than core are about."""
    about = {clause.component for clause in clauses_of(request.profile).values()}
    if implementation.tools() or implementation.stubs or any(implementation.has(name) for name in about):
        return
    from conformkit.spec.tools import tools_of

    parts = [name for name in components_of(request.profile) if name in about]
    advice = [f"looked for {', '.join([*parts, *tools_of(request.profile)])}"]
    advice += [f"{name}: {why}" for name, why in (implementation.errors | implementation.unfit).items()]
    advice.append(_otherwise(request))
    example = "get_batch" if request.profile == "lm" else parts[0]
    advice += [f"    [components.{example}]", '    path = "yourpackage.module:name"']
    raise LoadFailure(f"{request.impl} exports nothing of profile {request.profile}", advice=tuple(advice))
