"""Causes of failures: undeclared choices, the first part that differs, known mistakes. No verdict changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from conformkit.conformance.diagnosis.diagnose import diagnose
from conformkit.conformance.diagnosis.parts import locate
from conformkit.conformance.diagnosis.undeclared import undeclared
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Causes, DifferingPart, Result, Undeclared

__all__ = ["name_causes"]


def name_causes(
    request: RunRequest, results: Sequence[Result], implementation: Implementation, warm: WorkerFactory | None,
    trusted: Callable[[], WorkerFactory] | None,
) -> Iterator[Causes]:  # fmt: skip
    """Yield the causes of failures, each time with more of them: the search may be cut short.

    References with mistakes may run in `warm` too; otherwise `trusted` gives a process for them.
    """
    composite = request.profile != "lm"  # that profile has no parts and no choices of its own
    found = Causes()
    if composite:
        yield (found := replace(found, undeclared=undeclared(implementation, results)))
    if request.diagnose:
        if composite:
            yield (found := replace(found, parts=_located(request, results, found.undeclared, implementation)))
        yield replace(found, results=_diagnosed(request, results, found, implementation, warm, trusted))


def _located(
    request: RunRequest, results: Sequence[Result], choices: Sequence[Undeclared], implementation: Implementation
) -> dict[str, DifferingPart]:
    """Find the first part that differs in each composite without an undeclared choice."""
    named = {choice.component for choice in choices}
    found = locate(implementation, results, seed=request.seed)
    return {component: part for component, part in found.items() if component not in named}


def _diagnosed(
    request: RunRequest, results: Sequence[Result], found: Causes, implementation: Implementation,
    warm: WorkerFactory | None, trusted: Callable[[], WorkerFactory] | None,
) -> list[Result]:  # fmt: skip
    """Add the known mistakes that reproduce the failures. References with mistakes run in workers too."""
    whole = "TinyTransformerLM" if request.profile in {"core", "lm"} else "Transformer"
    variant = implementation.config.variant_for(whole)
    with ExitStack() as closing:
        if warm is None or not warm.torch:
            warm = trusted() if trusted is not None else None
        if warm is None:
            warm = SharedFactory(worker_factory(request.limits.threads, torch=True))
            closing.callback(warm.close)
        judged_by = partial(
            witness, variant=variant, warm=warm, profile=request.profile, seed=request.seed,
            like=implementation.bounds(),
        )  # fmt: skip
        actual = variant.but(**{choice.choice: choice.actual for choice in found.undeclared})
        otherwise = partial(judged_by, made=actual) if actual != variant else None
        cached = any(part.path == "generate.cache" for part in found.parts.values())
        return diagnose(results, variant, judged_by, otherwise, cached=cached)
