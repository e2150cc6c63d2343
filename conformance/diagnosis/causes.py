"""Causes of failures: undeclared choices, the first part that differs, known mistakes. No verdict changes."""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from conformkit.conformance.diagnosis.choices import Choices, JudgeAgain, found_choices, further_choices
from conformkit.conformance.diagnosis.diagnose import diagnose
from conformkit.conformance.diagnosis.parts import locate
from conformkit.conformance.diagnosis.undeclared import ANYWHERE
from conformkit.conformance.diagnosis.waiting import is_guess, told_by_waiting
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT, incomprehensible
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Causes, DifferingPart, Result
from conformkit.spec.profiles import named_profile

__all__ = ["CausesUnknownError", "explained"]


class CausesUnknownError(Exception):
    """Looking for causes ended in an error of the kit's own; no verdict depends on it."""


def explained(
    request: RunRequest, results: Sequence[Result], implementation: Implementation, judge_again: JudgeAgain,
    warm: WorkerFactory | None, trusted: Callable[[], WorkerFactory] | None, *, undeclared: bool,
) -> Iterator[tuple[Sequence[Result], Causes]]:  # fmt: skip
    """Yield the results and the causes of failures, each time with more of them: the search may be cut short.

    With `undeclared`, choices that were made and not declared are looked for first, and results are those under them.
    References with mistakes may run in `warm` too; otherwise `trusted` gives a process for them. Raises
    CausesUnknownError.
    """
    named = partial(_named, request, implementation, warm, trusted)
    choices = Choices(results=results)
    try:
        if undeclared and named_profile(request.profile).has_parts:  # else it has no choices of its own
            far = frozenset[str]() if request.diagnose else ANYWHERE
            choices = found_choices(implementation, results, judge_again, far=far)
        known = yield from named(choices)
        if further := further_choices(choices, known, implementation, judge_again):
            yield from named(further)
    except NOT_ITS_FAULT:
        raise
    except Exception as trouble:  # the boundary
        raise CausesUnknownError(incomprehensible(trouble)) from trouble


def _named(
    request: RunRequest, implementation: Implementation, warm: WorkerFactory | None,
    trusted: Callable[[], WorkerFactory] | None, choices: Choices,
) -> Generator[tuple[Sequence[Result], Causes], None, Sequence[Result]]:  # fmt: skip
    """Yield the causes under these choices; return the results with the known mistakes in them."""
    found = Causes(undeclared=choices.undeclared)
    yield choices.results, found
    if request.diagnose:
        if named_profile(request.profile).has_parts:
            found = replace(found, parts=_located(request, choices, implementation))
            yield choices.results, found
        found = replace(found, results=_diagnosed(request, choices, found, implementation, warm, trusted))
        yield choices.results, found
        said = told_by_waiting(implementation, found.results, found.parts, profile=request.profile, seed=request.seed)
        if said:
            found = replace(found, parts={**found.parts, **said}, results=_without_guesses(found.results, said))
            yield choices.results, found
    return found.results


def _without_guesses(results: Sequence[Result], said: Container[str]) -> list[Result]:
    """Return the results without guesses about components whose numbers have an explanation."""
    return [replace(r, looks_like=()) if r.clause.component in said and is_guess(r) else r for r in results]


def _located(request: RunRequest, choices: Choices, implementation: Implementation) -> dict[str, DifferingPart]:
    """Find the first part that differs in each composite; not where a choice was seen and nothing judged under it."""
    named = {choice.component for choice in choices.undeclared} - choices.used.keys()
    judged = [r for r in choices.results if r.clause.id not in choices.broken]
    found = locate(implementation, judged, seed=request.seed, level=request.level)
    return {component: part for component, part in found.items() if component not in named}


def _diagnosed(
    request: RunRequest, choices: Choices, found: Causes, implementation: Implementation,
    warm: WorkerFactory | None, trusted: Callable[[], WorkerFactory] | None,
) -> list[Result]:  # fmt: skip
    """Add the known mistakes that reproduce the failures. References with mistakes run in workers too."""
    actual = implementation.variant_of(_whole(request.profile, implementation))
    declared = actual.but(**{choice.choice: choice.declared for choice in choices.undeclared})
    actual = declared.but(**{choice.choice: choice.actual for choice in choices.undeclared})
    with ExitStack() as closing:
        if warm is None or not warm.torch:
            warm = trusted() if trusted is not None else None
        if warm is None:
            warm = SharedFactory(worker_factory(request.limits.threads, torch=True))
            closing.callback(warm.close)
        judged_by = partial(
            witness, warm=warm, profile=request.profile, seed=request.seed, like=implementation.bounds()
        )
        cached = any(part.path == "generate.cache" for part in found.parts.values())
        plain = partial(judged_by, variant=declared)
        if choices.used:
            named = _of_choices(choices, partial(diagnose, variant=declared, witness=plain, level=request.level))
            rest = [result for result in choices.results if result.clause.id not in named]
            named |= _by_id(
                diagnose(rest, actual, partial(judged_by, variant=actual), cached=cached, level=request.level)
            )
            return [named[result.clause.id] for result in choices.results]
        otherwise = partial(plain, made=actual) if actual != declared else None
        return diagnose(choices.results, declared, plain, otherwise, cached=cached, level=request.level)


def _whole(profile: str, implementation: Implementation) -> str:
    """Return the component whose variant is that of the reference: a model that is there."""
    names = named_profile(profile).models
    return next((name for name in names if implementation.has(name)), names[0])


def _of_choices(choices: Choices, explained: Callable[[Sequence[Result]], list[Result]]) -> dict[str, Result]:
    """Return what is red because of a choice, with the known mistakes that are this choice; all that it broke tells."""
    caused = _by_id(choices.caused)
    others = [r for r in choices.results if not r.verdict.red and r.clause.id not in caused]
    known = _by_id(explained([*choices.caused, *others]))
    own = [result for result in choices.results if result.clause.id in choices.broken]
    return {r.clause.id: replace(r, looks_like=known[r.clause.id].looks_like) for r in own}


def _by_id(results: Sequence[Result]) -> dict[str, Result]:
    return {result.clause.id: result for result in results}
