"""What conform adapt leaves out of a draft, and what it keeps in it as a mistake."""

from dataclasses import replace

import pytest

from conformkit.conformance.discovery.checking import checked
from conformkit.conformance.discovery.draft import Draft
from conformkit.conformance.discovery.proposal import NAME_ALONE, Proposal
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.hint import Hint
from conformkit.conformance.engine.results import Certainty, LooksLike, Verdict
from tests.report.samples import make_report, make_result

EXACT = LooksLike("mha-unscaled", "scores are not divided", Certainty.EXACT, (), Hint("s", "a", "m"))


def proposed(path="theirs:Mixer", *, matched=False) -> Draft:
    construct = {"d_model" if path.endswith("MultiHeadAttention") else "width": "d_model"}
    proposal = Proposal("MultiHeadAttention", {"path": path, "construct": construct}, matched=matched)
    return Draft("theirs", "torch", [proposal], (), {}, (), {"qkv_bias": ("MultiHeadAttention", True)})


def judged(found: Draft, *red, unusable=None):
    """Return what becomes of a draft if these results come of it, and how often it is judged."""
    runs = []

    def judge(draft, _):
        runs.append(draft)
        left = not draft.judged()
        return make_report(*(() if left else red), unusable={} if left else unusable or {})

    return checked(found, judge)[0], len(runs)


def fail(clause_id="MHA-ORACLE", **changes):
    return replace(make_result(Verdict.FAIL, clause_id, component="MultiHeadAttention"), **changes)


def test_numbers_that_nothing_explains_are_left_out_with_their_guesses():
    """Would break if ALiBi were judged as wrong attention, or its guessed choices were written for all components."""
    found, runs = judged(proposed(), fail())
    assert runs == 2
    assert "unconfirmed = true" in found.text()
    assert found.failing == {"MultiHeadAttention"}  # adapt doesn't say that it conforms: it may be wrong
    assert "qkv_bias" not in found.text()
    assert "# unsure: left out of the run, 1 clause about it fails, " in found.text()
    assert "and no known mistake gives its numbers" in " ".join(found.text().split())


@pytest.mark.parametrize(
    ("found", "result"),
    [
        (proposed(), fail(looks_like=(EXACT,))),
        (proposed(), fail(looks_like=(replace(EXACT, certainty=Certainty.LIKELY),))),
        (proposed(matched=True), fail()),
        (proposed("theirs:MultiHeadAttention"), fail()),
    ],
    ids=["a-known-mistake", "a-likely-one", "a-variant-of-the-definition", "the-contracts-names"],
)
def test_what_is_known_to_be_wrong_stays_in_the_draft(found, result):
    kept, runs = judged(found, result)
    assert (kept.without, runs) == ({}, 1)


def test_an_unsure_binding_is_left_out():
    why = Unusable("binding unsure: the weights of MultiHeadAttention could not be bound")
    found, _ = judged(proposed(matched=True), unusable={"MultiHeadAttention": why})
    assert found.without == {"MultiHeadAttention": why.problem}


def test_log_probabilities_are_told_as_a_style():
    found, _ = judged(proposed(), fail("LM-LOGITS-RAW", looks_like=(EXACT,)))
    assert "return the logits" in found.without["MultiHeadAttention"]


def test_something_else_with_a_components_name_is_left_out():
    """Would break if a factory called FeedForward kept a draft that does not propose it from working."""
    found, runs = judged(proposed(matched=True), unusable={"FeedForward": Unusable("theirs:FeedForward takes no x")})
    assert runs > 1
    assert "[components.FeedForward]\nunconfirmed = true\n# unsure: theirs:FeedForward takes no x" in found.text()
    assert found.judged()


@pytest.mark.parametrize(("verdict", "left"), [(Verdict.PASS, []), (Verdict.BLOCKED, [NAME_ALONE])])
def test_a_doubt_about_numbers_ends_where_they_are_judged_and_right(verdict, left):
    found = proposed()
    found.proposals[0].doubts.append(NAME_ALONE)
    result = make_result(verdict, "MHA-ORACLE", component="MultiHeadAttention")
    checked(found, lambda _, __: make_report(result))
    assert found.proposals[0].doubts == left
