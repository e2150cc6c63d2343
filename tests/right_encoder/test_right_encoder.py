"""No false alarm in profiles encoder and vit: right models, differently written, break no binding clause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.clauses import clauses_of
from tests.outcomes import Inputs, law
from tests.right.false_alarms import alarms, right_ones
from tests.shares import left_out, share
from tests.tiers import sampled

OTHERS = [
    (profile, Path(impl))
    for profile in ("encoder", "vit")
    for impl in right_ones(profile)
    if impl != "conformkit.reference"
]
"""The reference has a separate test, in tests/suite."""
QUICK = ["encoder-settings", "vit-rearranged"]
MODELS = {"BertModel", "BertForPreTraining", "VisionTransformer"}


def name(case: tuple[str, Path]) -> str:
    return f"{case[0]}-{case[1].stem}"


def inputs(case: tuple[str, Path]) -> Inputs:
    """Return what an implementation meets: all of its profile, of clauses about every size its share."""
    profile, impl = case
    met = law(clauses_of(profile))
    return replace(met, files=(impl,), texts=(*met.texts, share(impl.stem, profile, impl)))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.full(guard="test_the_weights_of_every_part_are_found")
@pytest.mark.parametrize("case", OTHERS, ids=name)
def test_right_code_breaks_no_binding_clause(case: tuple[str, Path], warm: LentFactory) -> None:
    profile, impl = case
    without = left_out(impl.stem, profile, impl)
    found = alarms(str(impl), [0, 1], profile, without, warm=warm)
    told = [f"{result.clause.id}: {result.message}" for _, result in found]
    assert not told, "\n".join(told)


@pytest.mark.parametrize("case", sampled(OTHERS, name, always=QUICK, files=lambda case: [case[1]], most=1))
def test_the_weights_of_every_part_are_found(case: tuple[str, Path], warm: LentFactory) -> None:
    """Would break if a layout of patches, a second result or a missing head were no longer understood."""
    profile, impl = case
    with opened(RunRequest(impl=str(impl), profile=profile), warm) as (implementation, _):
        assert [bound.component.name for bound in implementation.bounds() if not bound.fits] == []
        assert MODELS & {subject.name for subject in implementation.subjects()}
