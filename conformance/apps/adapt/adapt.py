"""A draft of conform.toml, checked by a run with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from conformkit.conformance import runner
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.discovery.checking import checked
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.drafting import absent, drafted, other_parts
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report
from conformkit.spec.clauses import select
from conformkit.spec.components import component as component_of
from conformkit.spec.components import components_of

__all__ = ["Adapted", "adapt", "draft"]


@dataclass(frozen=True, slots=True)
class Adapted:
    """A draft, and the result of the run with it: a report, or why there is none."""

    draft: Draft
    report: Report | None
    problem: str = ""
    advice: tuple[str, ...] = field(default=())

    @property
    def conforms(self) -> bool:
        """Whether everything that looks like a component was judged with the draft, without a failure."""
        return self.report is not None and self.report.conforms and not self.draft.failing


def adapt(request: RunRequest, named: Mapping[str, str], early: HeadStart | None = None) -> Adapted:
    """Draft a conform.toml for an implementation, and judge it with the draft. An existing file is not read.

    `named` gives paths of components by name. Raises as `opened`; LoadFailure if nothing is found.
    """
    blank = replace(request, config=Config())
    found = draft(blank, named, early)
    if not found.finds_something:
        advice = ("say where one is: conform adapt … --component MultiHeadAttention=yourpackage.module:YourClass",)
        near = tuple(f"{name}: {why}" for name, why in found.missing.items() if why)
        problem = "it contains nothing that looks like a component of the contract"
        raise LoadFailure(problem, advice=(*near, *advice, *found.left_out))
    found = found.leaving_out(other_parts(found, named))
    only = _prefixes(found, named, request.profile)
    if not only:
        found = found.leaving_out(absent(found))

    def judge(draft: Draft, diagnose: bool) -> Report:
        proof = replace(request, config=parse_config(draft.text()), diagnose=diagnose, only=only)
        return runner.run(proof, early=HeadStart(early.location if early else None))

    try:
        return Adapted(*checked(found, judge))
    except LoadFailure as failure:
        return Adapted(found, None, failure.problem, failure.advice)


def draft(request: RunRequest, named: Mapping[str, str], early: HeadStart | None = None) -> Draft:
    """Draft a conform.toml without judging anything."""
    with imported(request, early) as (implementation, location):
        return drafted(implementation, location, request, named)


def _prefixes(found: Draft, named: Mapping[str, str], profile: str) -> tuple[str, ...]:
    """Return the clauses of the check: all, or those of the components that were named in a library."""
    if not named or len(found.proposals) > len(named):
        return ()
    prefixes = {component.prefix for component in components_of(profile).values() if component.name not in named}
    prefixes -= {component_of(name).prefix for name in named}
    return tuple(c.id for c in select((), profile) if c.component in named and c.prefix not in prefixes)
