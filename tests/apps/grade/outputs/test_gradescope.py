import json
from dataclasses import replace

import pytest

from conformkit.conformance.apps.grade.outputs.gradescope import as_results
from conformkit.conformance.apps.grade.outputs.wording import report_of
from conformkit.conformance.apps.grade.record import Advice
from conformkit.conformance.engine.results import Verdict
from tests.apps.grade.outputs import samples

VISIBILITY = {"visible", "hidden", "after_due_date", "after_published"}
FORMATS = {"text", "html", "simple_format", "md", "ansi"}


def results(grade):
    """Check what Gradescope requires, and return the object."""
    found = json.loads(as_results(grade, report_of(grade)))
    assert isinstance(found["score"], float | int)
    assert {found["visibility"], found["stdout_visibility"]} <= VISIBILITY
    assert {found["output_format"], found["test_output_format"], found["test_name_format"]} <= FORMATS
    for test in found["tests"]:
        assert test["name"]
        assert test["visibility"] in VISIBILITY
        assert test["output_format"] in FORMATS
        assert test.get("status", "passed") in {"passed", "failed"}
        assert ("score" in test) == ("max_score" in test) == ("status" in test)
    return found


def test_a_test_a_group_whose_scores_add_up(graded):
    found = results(graded())
    assert [(t["name"], t["score"], t["max_score"], t["status"]) for t in found["tests"]] == [
        ("Attention", 5.0, 10.0, "failed"),
        ("Several heads", 2.5, 2.5, "passed"),
    ]
    assert found["score"] == sum(t["score"] for t in found["tests"]) == 7.5


def test_failures_are_shown_under_their_group_as_far_as_hints_allow(graded):
    failed, passed = results(graded())["tests"]
    assert "FAIL SDPA-SCALE" in failed["output"]
    assert "numbers are wrong" in failed["output"]
    assert "hint:" in failed["output"]
    assert "looks like" not in failed["output"]
    assert "again:      conform run --impl ada --only SDPA-SCALE" in failed["output"]
    assert passed["output"] == "3 of 3 clauses pass."


@pytest.mark.parametrize("required", [(), ("SDPA-SCALE",)], ids=["group", "whole"])
def test_a_required_clause_says_what_it_costs(graded, required):
    group = graded().groups[0]
    grade = graded(required=required, groups=(type(group)(*_fields(group, points=0.0, required=("SDPA-SCALE",))),))
    found = results(grade)
    assert "no points for this group" in found["tests"][0]["output"]
    assert ("no points for the whole submission" in found["output"]) == bool(required)


def _fields(group, **changes):
    return [changes.get(name, getattr(group, name)) for name in group.__slots__]


def test_a_submission_that_was_not_judged_has_no_score_and_says_why(lost):
    found = results(lost)
    assert found["score"] == 0
    assert found["output"].startswith("not loaded: importing it raised ImportError")
    assert "the path of your code at home" in found["output"]
    assert {t["status"] for t in found["tests"]} == {"failed"}


def test_advice_is_for_the_instructor(graded):
    *_, last = results(graded(advice=(Advice("call", "torch.nn.MultiheadAttention", "a.py:3"),)))["tests"]
    assert last["visibility"] == "hidden"
    assert "call of torch.nn.MultiheadAttention at a.py:3" in last["output"]
    assert "score" not in last


def test_hostile_text_is_text_of_bounded_length(hostile):
    found = results(hostile)
    for text in (found["output"], *(t["output"] for t in found["tests"])):
        assert len(text) <= 20_000
        assert not set(text) & {"\x1b", "\u202e", "\x00"}


def test_stubs_take_one_line_and_what_is_blocked_one_for_each_cause(graded):
    """Would break if 32 stubs were 32 paragraphs of a text that students read in a small window."""
    names = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA", "SDPA-GRAD")
    stub = "scaled_dot_product_attention is not implemented yet"
    found = [samples.result(name, Verdict.NOT_IMPLEMENTED, reason=stub) for name in names[:3]]
    found.append(samples.result(names[3], Verdict.BLOCKED, blocked_by="SDPA-FORMULA"))
    group = replace(graded().groups[0], failed=names)
    text = results(graded(groups=(group,), report=samples.report(*found)))["tests"][0]["output"]
    assert f"3 clauses not implemented: {stub} (SDPA-OUT-SHAPE, SDPA-SCALE, SDPA-FORMULA)" in text
    assert "1 clause blocked: not checked until SDPA-FORMULA passes (SDPA-GRAD)" in text
