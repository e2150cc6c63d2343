"""The reference that stands in for an implementation is in the variant of the model that the profile judges."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from conformkit.conformance.defects import Hint
from conformkit.conformance.diagnosis import waiting
from conformkit.conformance.diagnosis.causes import _whole, _without_guesses
from conformkit.conformance.engine.results import Certainty, LooksLike, Result, Verdict
from conformkit.conformance.findings.altered import Altered
from conformkit.conformance.findings.finding import stated
from conformkit.conformance.findings.relation import How, Relation
from conformkit.spec.clauses import clause, clauses_of
from conformkit.spec.profiles import PROFILES


@pytest.mark.parametrize("profile", PROFILES)
def test_the_whole_is_something_that_the_profile_is_about(profile: str) -> None:
    """Would break for profile paths, where a Transformer took the place of the model."""
    found = _whole(profile, SimpleNamespace(has=lambda _: False))
    about = {clause.component for clause in clauses_of(profile).values()}
    assert found in about or not about & {"TinyTransformerLM", "BertForPreTraining", "VisionTransformer"}


MADE = Relation(How.MADE, names=("scores are limited to ±2",), change=Altered.SCORED)
TOLD = "MHA-ORACLE waits, and says: output: it is what it should be if scores are limited to ±2"
GUESS = LooksLike("sdpa-no-scale", "no scale", Certainty.UNSURE, (), Hint("", "", ""))


@pytest.mark.parametrize(
    ("said", "failed", "told"),
    [
        (MADE, {}, TOLD),
        (MADE, {"looks_like": (GUESS,)}, TOLD),
        (MADE, {"looks_like": (replace(GUESS, certainty=Certainty.LIKELY),)}, None),
        (MADE, {"finding": replace(stated("output"), relation=MADE)}, None),
        (Relation(How.FACTOR, numbers=(0.5,)), {}, None),
        (None, {}, None),
    ],
    ids=["nothing-said", "guessed", "named", "says-itself", "by-looks-alone", "silent"],
)  # fmt: skip
def test_what_waits_says_what_the_failure_does_not(said, failed, told, monkeypatch):
    """A clamp of the scores was a divisor of 2.949 and nothing else; the guess about it was wrong."""
    finding = replace(stated("output"), label="output", relation=said)
    alone = SimpleNamespace(alone=lambda name: Result(clause(name), Verdict.FAIL, finding))
    monkeypatch.setattr(waiting, "Judge", lambda *_, **__: alone)
    results = [
        replace(Result(clause("MHA-SCALE-DHEAD"), Verdict.FAIL, stated("the divisor is 2.949")), **failed),
        Result(clause("MHA-ORACLE"), Verdict.BLOCKED),
    ]
    found = waiting.told_by_waiting(None, results, {}, profile="core", seed=0)
    assert {name: part.sentence for name, part in found.items()} == ({"MultiHeadAttention": told} if told else {})
    guesses = [r for r in _without_guesses(results, found) if r.looks_like]
    assert guesses == ([] if told else [r for r in results if r.looks_like])
