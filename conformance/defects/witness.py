"""The reference with defects in it, judged as an implementation is."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from conformkit.conformance.defects import Defect
from conformkit.conformance.defects.patching import write_reference
from conformkit.conformance.driver.warm import Nursery
from conformkit.conformance.judge import Judge
from conformkit.conformance.registry import tests
from conformkit.conformance.runner import RunRequest, opened
from conformkit.spec.variants import Variant

__all__ = ["witness"]


@contextmanager
def witness(
    chosen: Sequence[Defect], components: Collection[str] | None,
    *, variant: Variant, warm: Nursery, profile: str = "core", seed: int = 0, dtypes: Sequence[str] = (),
    tries: int = 1,
) -> Iterator[Judge]:  # fmt: skip
    """A judge of these components (None: all) of the reference with these defects, in this variant.

    Tools come with the profile that has them.

    So many `tries` are made to place its weights: names are right, unless a defect is about names or shapes.
    Raises PatchError where the defects don't go together, LoadFailure where nothing can be judged with them.
    """
    patches = tuple(patch for defect in chosen for patch in defect.patches)
    with tempfile.TemporaryDirectory(prefix="conform-") as folder:
        package = write_reference(Path(folder) / "witness", patches, variant, dtypes=dtypes)
        request = RunRequest(impl=str(package), profile=profile, seed=seed, tries=tries)
        with opened(request, warm, components=components) as (implementation, _):
            yield Judge(implementation, tests(profile), seed=seed)
