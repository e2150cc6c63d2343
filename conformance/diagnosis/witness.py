"""The reference with defects in it, judged as an implementation is."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.defects import Defect
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.spawn.warm import Nursery
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause
from conformkit.spec.variants import Variant

__all__ = ["witness"]


@contextmanager
def witness(
    chosen: Sequence[Defect], components: Collection[str] | None,
    *, variant: Variant, warm: Nursery, profile: str = "core", seed: int = 0, tries: int = 1,
    like: Sequence[Bound] | None = None, made: Variant | None = None,
) -> Iterator[Judge]:  # fmt: skip
    """A judge of these components (None: all) of the reference with these defects, in this variant.

    `made` is the variant that it is in truth, where that is not the declared one. Tools come with the profile that has
    them. So many `tries` are made to place its weights: names are right, unless a defect is about names or shapes.
    It stands for an implementation that is bound `like` that: it is drawn the same sizes and inputs, held to the same
    accuracy, and each clause is judged for itself, since the implementation passed those that it needs.
    Raises PatchError where the defects don't go together, LoadFailure where nothing can be judged with them.
    """
    patches = tuple(patch for defect in chosen for patch in defect.patches)
    with tempfile.TemporaryDirectory(prefix="conform-") as folder:
        formats = [bound.dtype for bound in like or ()]
        formats += ["float32" for bound in like or () if bound.offers.get("float32")]
        dtypes = tuple(dict.fromkeys(formats))
        package = write_reference(Path(folder) / "witness", patches, made or variant, dtypes, variant)
        request = RunRequest(impl=str(package), profile=profile, seed=seed, tries=tries)
        with opened(request, warm, components=components) as (implementation, _):
            if like is None:
                yield Judge(implementation, tests(profile), seed=seed)
            else:
                _liken(implementation, like)
                yield _Alone(implementation, tests(profile), seed=seed)


class _Alone(Judge):
    """Judges each clause whatever becomes of those that it needs."""

    def _blocked_by(self, clause: Clause) -> str:
        del clause
        return ""


def _liken(reference: Implementation, like: Sequence[Bound]) -> None:
    """Let the reference offer no more than an implementation does, in its limits and with its accuracy."""
    for bound in like:
        if reference.has(bound.component.name):
            own = reference.subject(bound.component.name).bound
            own.limits, own.precision = bound.limits, bound.precision
            own.offers = {name: has and bound.offers.get(name, has) for name, has in own.offers.items()}
