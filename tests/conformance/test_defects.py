"""Every known mistake breaks the clauses that it names, and the catalogue is sound."""

from __future__ import annotations

from conformkit.conformance.defects import defects
from conformkit.conformance.defects.kills import kill_rate, kills
from conformkit.conformance.defects.measuring import measure
from conformkit.spec.clauses import clauses


def test_every_defect_breaks_the_clauses_that_it_names():
    broken = dict(measure(list(defects())))
    spared = {name: set(defect.clauses) - set(broken[name]) for name, defect in defects().items()}
    assert not {name: clauses for name, clauses in spared.items() if clauses}


def test_every_defect_names_clauses_of_the_law():
    unknown = {name: c for name, d in defects().items() for c in d.clauses if c not in clauses()}
    assert not unknown
    assert all(defect.clauses for defect in defects().values())


def test_every_defect_has_been_measured_and_nothing_else():
    assert kills().keys() == defects().keys()


def test_most_defects_break_a_binding_clause():
    killed, total = kill_rate(kills())
    assert killed >= 0.95 * total


def test_titles_and_patches_are_each_defects_own():
    for kind in ("title", "patches"):
        values = [(getattr(defect, kind), defect.stem, defect.variant) for defect in defects().values()]
        assert len(values) == len(set(values)), kind
