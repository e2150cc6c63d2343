"""The reference with defects, judged like an implementation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.defects import Defect
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.scratch import held_folder
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.findings.finding import Finding
from conformkit.conformance.probing.known import Known
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause
from conformkit.spec.variants import BASES, CANONICAL, Variant

__all__ = ["witness"]


@contextmanager
def witness(
    chosen: Sequence[Defect], components: Collection[str] | None,
    *, variant: Variant, warm: WorkerFactory, profile: str = "core", seed: int = 0, tries: int = 1,
    like: Sequence[Bound] | None = None, made: Variant | None = None, known: Mapping[str, Known] | None = None,
) -> Iterator[Judge]:  # fmt: skip
    """A judge of these components (None: all) of the reference with these defects, in this variant.

    `made` is its actual variant, if that is not the declared one. Tools come with the profile that has them. `tries` is
    the maximum number of weight assignments to try: names are right, unless a defect is about names or shapes.
    It replaces an implementation bound `like` that: it gets the same sizes, inputs and tolerances, and each clause is
    judged independently, since the implementation passed the needed ones. `known` is what was learned of the reference
    without these defects.
    Raises PatchError if the defects contradict each other, LoadFailure if nothing can be judged with them.
    """
    patches = tuple(patch for defect in chosen for patch in defect.patches)
    with held_folder() as folder:
        formats = [bound.dtype for bound in like or ()]
        formats += ["float32" for bound in like or () if bound.offers.get("float32")]
        dtypes = tuple(dict.fromkeys(formats))
        base = BASES.get(profile, CANONICAL)
        package = write_reference(folder / "witness", patches, made or variant, dtypes, variant, base)
        request = RunRequest(impl=str(package), profile=profile, seed=seed, tries=tries)
        with opened(request, warm, components=components, known=known) as (implementation, _):
            if like is None:
                yield Judge(implementation, tests(profile), seed=seed)
            else:
                _liken(implementation, like)
                yield _Alone(implementation, tests(profile), seed=seed)


class _Alone(Judge):
    """Judges each clause, whatever the results of the clauses it needs."""

    def _blocked_by(self, clause: Clause) -> str:
        del clause
        return ""

    def _related(self, failure: ClauseFailure) -> Finding:
        """Return what was found as it is: only what the implementation shows is put into words."""
        return failure.finding


def _liken(reference: Implementation, like: Sequence[Bound]) -> None:
    """Restrict the reference to what the implementation offers, with its limits and tolerances."""
    for bound in like:
        if reference.has(bound.component.name):
            own = reference.subject(bound.component.name).bound
            offers = {name: has and bound.offers.get(name, has) for name, has in own.offers.items()}
            reference.rebind(replace(own, limits=bound.limits, precision=bound.precision, offers=offers))
