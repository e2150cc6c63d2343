"""No false alarm on right code by authors who had not seen the law: none breaks a binding clause."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from tests.right.false_alarms import alarms, wild_ones
from tests.tiers import sampled

WILD = [(Path(impl), profile) for profile in ("core", "seq2seq") for impl in wild_ones(profile)]
QUICK = ["rope_tables", "lecture_translator"]
"""One of each profile."""
CASES = sampled(WILD, lambda case: case[0].name, always=QUICK, files=lambda case: [case[0]], most=2)


@pytest.mark.parametrize("case", CASES)
def test_right_code_of_others_breaks_no_binding_clause(case: tuple[Path, str], warm: LentFactory) -> None:
    impl, profile = case
    found = [f"{result.clause.id}: {result.message}" for _, result in alarms(str(impl), [0], profile, warm=warm)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("case", CASES)
def test_what_conform_toml_declares_is_bound(case: tuple[Path, str], warm: LentFactory) -> None:
    impl, profile = case
    with opened(RunRequest(impl=str(impl), profile=profile), warm) as (implementation, _):
        assert [bound.component.name for bound in implementation.bounds() if not bound.fits] == []
        assert implementation.subjects()


def test_the_readme_describes_each_package() -> None:
    readme = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `(\w+)/` \| (\w+) \|", readme, re.MULTILINE)
    assert described == sorted((impl.name, profile) for impl, profile in WILD)
