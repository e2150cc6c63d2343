"""No false alarm on right code by authors who had not seen the law: none breaks a binding clause."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.clauses import clauses_of
from tests.right.false_alarms import is_alarm, judged, wild_ones
from tests.shares import left_out, share
from tests.outcomes import Inputs, law
from tests.tiers import sampled

WILD = [(Path(impl), profile) for profile in ("core", "seq2seq") for impl in wild_ones(profile)]
QUICK = ["rope_tables", "lecture_translator"]
"""One of each profile."""
CASES = sampled(WILD, lambda case: case[0].name, always=QUICK, files=lambda case: [case[0]], most=2)


def inputs(case: tuple[Path, str]) -> Inputs:
    """Return what a package meets: all of its profile, of clauses about every size its share."""
    met = law(clauses_of(case[1]))
    return replace(met, files=(case[0],), texts=(*met.texts, share(case[0].name, case[1], case[0])))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize("case", CASES)
def test_right_code_of_others_is_bound_and_breaks_no_binding_clause(case: tuple[Path, str], warm: LentFactory) -> None:
    impl, profile = case
    without = left_out(impl.name, profile, impl)
    with opened(RunRequest(impl=str(impl), profile=profile), warm) as (implementation, _):
        assert [bound.component.name for bound in implementation.bounds() if not bound.fits] == []
        assert implementation.subjects()
        found = [result for result in judged(implementation, 0, profile, without) if is_alarm(result)]
    assert not found, "\n".join(f"{result.clause.id}: {result.message}" for result in found)


def test_the_readme_describes_each_package() -> None:
    readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)/` \| (\w+) \|", readme, re.MULTILINE)
    assert described == sorted((impl.name, profile) for impl, profile in WILD)
