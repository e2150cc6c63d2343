"""Every known mistake breaks the clauses that it names, and the catalogue is sound."""

from __future__ import annotations

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.defects.kills import kills, red_with
from conformkit.conformance.driver.warm import nursery
from conformkit.conformance.runner import LoadFailure
from conformkit.spec.clauses import clauses


@pytest.fixture(scope="module")
def warm():
    process = nursery(1, torch=True)
    yield process
    process.close()


@pytest.mark.parametrize("name", defects())
def test_the_clauses_that_a_defect_names_fail_because_of_it(name, warm):
    defect = defects()[name]
    try:
        red = {result.clause.id for result in red_with(defect, warm, only=defect.clauses)}
    except LoadFailure:
        return
    assert set(defect.clauses) <= red


def test_every_defect_names_clauses_of_the_law():
    unknown = {name: c for name, d in defects().items() for c in d.clauses if c not in clauses()}
    assert not unknown
    assert all(defect.clauses for defect in defects().values())


def test_every_defect_has_been_measured_and_nothing_else():
    assert kills().keys() == defects().keys()


def test_what_was_measured_contains_what_is_named():
    missing = {n: set(d.clauses) - set(kills()[n]) for n, d in defects().items() if set(d.clauses) - set(kills()[n])}
    assert not missing


def test_titles_and_patches_are_each_defects_own():
    for kind in ("title", "patches"):
        values = [(getattr(defect, kind), defect.variant) for defect in defects().values()]
        assert len(values) == len(set(values)), kind
