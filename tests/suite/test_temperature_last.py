"""A declared order of temperature and filters is what is asked for, and nothing else passes under it."""

from __future__ import annotations

from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.engine.results import Verdict
from conformkit.spec.variants import CANONICAL

LAST = CANONICAL.but(temperature_last=True)
ASKED = ("GEN-FILTER-ORDER", "GEN-TOPP-RENORM", "GEN-TOPP-SUPPORT", "GEN-TEMP-EACH", "GEN-FILTER-EITHER")


def verdicts(warm, chosen, variant):
    with witness(chosen, {"TinyTransformerLM"}, variant=variant, warm=warm, made=CANONICAL) as judge:
        return {name: judge.result(name).verdict for name in ASKED}


def test_filters_before_the_temperature_pass_where_they_are_declared(warm):
    after = [defects()["gen-topp-before-temp"]]
    assert set(verdicts(warm, after, LAST).values()) == {Verdict.PASS}
    assert verdicts(warm, after, CANONICAL)["GEN-FILTER-ORDER"] is Verdict.FAIL


def test_filters_after_the_temperature_fall_short_of_that_declaration(warm):
    assert verdicts(warm, (), LAST)["GEN-FILTER-ORDER"] is Verdict.FAIL
