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
    assert killed >= 0.9 * total


def test_titles_and_patches_are_each_defects_own():
    for kind in ("title", "patches"):
        values = [(getattr(defect, kind), defect.stem, defect.variant) for defect in defects().values()]
        assert len(values) == len(set(values)), kind


WITHOUT_A_DEFECT = {
    "SDPA-DUP-KEYS": "whatever treats equal keys unlike breaks SDPA-KEY-PERM as well",
    "SA-PERM-EQUIV": "what was tried breaks SA-CAUSAL-OFF, which it needs",
    "MHA-WEIGHTS-SHAPE": "the reference returns no weights",
    "MHA-IDENTICAL-HEADS": "what was tried breaks MHA-SCALE-DHEAD, which it needs",
    "GQA-DIVISIBLE": "the reference's constructors take no number of key/value heads",
    "PE-NONCONTIG": "the reference's table has the shape of its input: nothing is merged that strides could forbid",
    "EMB-PARAM-COUNT": "what was tried breaks LM-PARAM-COUNT, which it needs",
    "EMB-GRAD-ACCUM": "what was tried breaks GRAD-CHECK, which it needs",
    "GEN-ROWS-INDEP": "one draw for all rows breaks GEN-SAMPLES, which it needs",
    "NUM-TINY": "what was tried breaks SDPA-ZERO-Q, which it needs",
    "NUM-F32-F64": "what was tried breaks an oracle in float32 first",
    "DT-INT-IDS": "logits of another format are taken for the precision that the model computes in",
    "ERRH-DIVISIBLE": "asks all components what MHA-DIVISIBLE and LM-DIVISIBLE ask theirs",
}
"""Clauses that no known mistake is named for, and why."""

TWINS = {
    ("SDPA-GOLDEN-2X2", "SDPA-GOLDEN-TINY"): "worked examples that students know; two sources print two of them",
    (
        "PE-ODD-COS",
        "PE-ROTATION",
    ): "a value and its property; only a wrong angle of the cosines breaks either",
    ("PE-PRECISION", "PE-UNIQUE"): "rounded positions are both inexact and alike",
    (
        "PE-GOLDEN-D4",
        "PE-GOLDEN-D512",
        "PE-GOLDEN-D8",
    ): "stored tables of three widths, one of them a real model's",
    ("SA-BATCH-INDEP", "SA-ORACLE"): "a mask kept from the first batch breaks both",
    ("GRAD-FINITE", "NUM-SOFTMAX-SHIFT"): "a softmax without its maximum overflows forward and backward",
    ("GRAD-BATCH-MEAN", "NUM-NAN-LOCAL"): "a maximum over the batch mixes its elements both ways",
}
"""Clauses that exactly the same mistakes are named for, and why both stay."""


def _named() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in clauses()}
    for name, defect in defects().items():
        for clause in defect.clauses:
            found[clause].add(name)
    return found


def test_every_clause_has_a_mistake_that_it_catches():
    assert {name for name, mistakes in _named().items() if not mistakes} == set(WITHOUT_A_DEFECT)


def test_no_two_clauses_catch_exactly_the_same_mistakes():
    by_mistakes: dict[frozenset[str], list[str]] = {}
    for name, mistakes in _named().items():
        by_mistakes.setdefault(frozenset(mistakes), []).append(name)
    assert {tuple(sorted(same)) for mistakes, same in by_mistakes.items() if mistakes and len(same) > 1} == set(TWINS)
