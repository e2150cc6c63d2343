"""What is behind failures: undeclared choices, the first part that differs, known mistakes. It changes no verdict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from conformkit.conformance.diagnosis.diagnose import diagnose
from conformkit.conformance.diagnosis.parts import locate
from conformkit.conformance.diagnosis.undeclared import undeclared
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import SharedNursery
from conformkit.conformance.driver.spawn.warm import Nursery, nursery
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Part, Report, Result

__all__ = ["name_causes"]


def name_causes(
    request: RunRequest, report: Report, implementation: Implementation, warm: Nursery | None,
    trusted: Callable[[], Nursery] | None,
) -> None:  # fmt: skip
    """Add to a report what is behind its failures, as it is found.

    `warm` may hold references with mistakes in them, too; where there is none that may, `trusted` gives one.
    """
    composite = request.profile != "lm"  # which has no parts and no choices of its own
    if composite:
        report.undeclared = undeclared(implementation, report.results)
    if request.diagnose:
        report.parts = _located(report, implementation) if composite else {}
        report.results = _diagnosed(request, report, implementation, warm, trusted)


def _located(report: Report, implementation: Implementation) -> dict[str, Part]:
    """Find the first part that differs of each composite; one whose choice is named already needs no part."""
    named = {found.component for found in report.undeclared}
    found = locate(implementation, report.results, seed=report.seed)
    return {component: part for component, part in found.items() if component not in named}


def _diagnosed(
    request: RunRequest, report: Report, implementation: Implementation, warm: Nursery | None,
    trusted: Callable[[], Nursery] | None,
) -> list[Result]:  # fmt: skip
    """Add the known mistakes that reproduce the failures. References with mistakes in them run in workers, too."""
    whole = "TinyTransformerLM" if request.profile in {"core", "lm"} else "Transformer"
    variant = implementation.config.variant_for(whole)
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
        cached = any(part.path == "generate.cache" for part in report.parts.values())
        return diagnose(report.results, variant, judged_by, otherwise, cached=cached)
