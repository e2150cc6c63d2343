from dataclasses import replace

import pytest

from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.hint import Hint
from conformkit.conformance.engine.results import Certainty, LooksLike, Verdict
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.relation import How, Relation
from conformkit.conformance.report.badge import as_badge
from conformkit.conformance.report.causes import advice, briefly, likely_cause
from conformkit.conformance.report.wording import (
    excuse_lines,
    is_little,
    obstacles,
    scope,
    told_excuses,
    variant_line,
    verdict_line,
)
from conformkit.spec.clauses import Level

SCALE = LooksLike("no-scale", "nothing is divided", Certainty.EXACT, (), Hint("sharp", "the scores", "divide by √d"))
AXIS = LooksLike("axis", "columns add up", Certainty.EXACT, (), Hint("odd totals", "the softmax", "dim=-1"))
PAIR = (replace(SCALE, together_with=("axis",)), replace(AXIS, together_with=("no-scale",)))
TWICE = (SCALE, replace(SCALE, defect="no-scale-either", hint=replace(SCALE.hint, mistake="scale by 1/√d")))


@pytest.mark.parametrize(
    ("known", "looks", "fix"),
    [
        ((SCALE,), "nothing is divided (", "divide by √d"),
        (PAIR, "1) nothing is divided, and 2) columns add up (", "1) divide by √d; 2) dim=-1"),
        ((SCALE, AXIS), "1) nothing is divided, or 2) columns add up (", "1) divide by √d; 2) dim=-1"),
        (TWICE, "nothing is divided (", "divide by √d or scale by 1/√d"),
    ],
    ids=["one", "two together", "one of two", "one that two mend"],
)
def test_what_mends_a_mistake_bears_its_number_and_stands_in_one_line(result, known, looks, fix):
    """Would break if a reader with two mistakes and two fixes had to guess which fix belongs to which."""
    lines = advice(result(Verdict.FAIL, looks_like=known), 3)
    assert [label for label, _ in lines] == ["looks like:", "fix:"]
    assert lines[0][1].startswith(looks)
    assert lines[1][1] == fix


@pytest.mark.parametrize(
    ("certainty", "labels"),
    [(Certainty.EXACT, ["hint:", "look at:"]), (Certainty.LIKELY, ["perhaps:", "look at:"]), (Certainty.UNSURE, [])],
)
def test_a_hint_says_that_it_is_none_for_sure_and_a_guess_is_none(result, certainty, labels):
    """A wrong lead in feedback costs a student an evening."""
    known = (replace(SCALE, certainty=certainty),)
    assert [label for label, _ in advice(result(Verdict.FAIL, looks_like=known), 2)] == labels


@pytest.mark.parametrize(
    ("certainty", "heading"),
    [(Certainty.EXACT, SCALE.hint.symptom), (Certainty.LIKELY, f"perhaps: {SCALE.hint.symptom}")],
)
def test_a_hint_is_said_once_and_with_its_doubt(report, result, certainty, heading):
    """Catches the same symptom in the heading and below it, and one that loses its `perhaps` that way."""
    one = result(Verdict.FAIL, looks_like=(replace(SCALE, certainty=certainty),))
    told = replace(report(one), hints=2)
    assert briefly(told, one) == heading
    assert likely_cause(told, one) == [("look at:", SCALE.hint.area)]


def test_for_uncertain_mistakes_the_clause_itself_tells_the_fix(result):
    known = tuple(replace(like, certainty=Certainty.UNSURE) for like in (SCALE, AXIS))
    (_, looks), (label, fix) = advice(result(Verdict.FAIL, looks_like=known), 3)
    assert looks.startswith("nothing is divided, or columns add up (unsure: each of these mistakes")
    assert (label, fix) == ("fix:", "divide the scores by math.sqrt(k.shape[-1])")


def test_a_nan_is_not_mended_by_another_shape(result):
    """Would break if a mask that hides each position from itself ended in advice about widths."""
    ((label, fix),) = advice(result(Verdict.FAIL, clause_id="SA-SHAPE", finding=Finding(Kind.NOT_FINITE, "output")), 3)
    assert label == "fix:"
    assert "isfinite" in fix
    ((_, fix),) = advice(result(Verdict.FAIL, clause_id="SA-SHAPE"), 3)
    assert "isfinite" not in fix


def test_a_factor_of_a_single_number_does_not_displace_the_clauses_own_fix(result):
    """Would break if "look for a factor" stood where the clause knows that √d_k is missing."""
    half = Relation(How.FACTOR, (0.5,), ("1/d_v",))
    for entries, own in ((1, True), (12, False)):
        found = Finding(Kind.NUMBERS, "the divisor", got=1.0, want=2.0, bad=entries, of=entries, relation=half)
        ((_, fix),) = advice(result(Verdict.FAIL, finding=found), 3)
        assert (fix == "divide the scores by math.sqrt(k.shape[-1])") is own


def stub(result, name, **changes):
    return result(Verdict.NOT_IMPLEMENTED, unfinished=True, tried=False, component=name, **changes)


def test_stubs_are_shown_by_name_and_clauses_are_counted_once(report, result):
    """Would break if a count of binding clauses only were next to one of all unimplemented clauses."""
    found = report(
        stub(result, "FeedForward"), stub(result, "FeedForward", clause_id="FFN-SOFT", level=Level.SHOULD),
        stub(result, "TinyTransformerLM", clause_id="GEN-LENGTH"), result(Verdict.PASS, "SDPA-SHAPE"),
        stubs={"FeedForward": "mypkg/ffn.py:3", "generate": "mypkg/model.py:9", "MultiHeadAttention": "mypkg/mha.py:2"},
        missing=["MultiHeadAttention", "TransformerBlock"],
    )  # fmt: skip
    assert obstacles(found) == [
        "not implemented yet: FeedForward, generate, MultiHeadAttention", "missing: TransformerBlock",
    ]  # fmt: skip
    assert "not implemented yet: FeedForward, generate" in verdict_line(found)


def test_a_stored_report_that_does_not_list_its_stubs_names_them_all_the_same(report, result):
    assert obstacles(report(stub(result, "FeedForward"), result(Verdict.PASS, "SDPA-SHAPE"))) == [
        "not implemented yet: FeedForward"
    ]


def test_a_badge_has_room_for_how_many_parts_are_not_implemented(report, result):
    """Would break if their names, which are too long for a badge, were cut in the middle."""
    names = ("ScaledDotProductAttention", "MultiHeadAttention", "TransformerBlock")
    found = report(*(stub(result, name, clause_id=f"X-{name}") for name in names))
    assert ">core: not implemented yet: 3 parts, seed 7</text>" in as_badge(found)
    assert f"not implemented yet: {', '.join(names)};" in verdict_line(found)


def test_a_verdict_says_of_how_many_parts_it_speaks_and_which_are_not_there(report, result):
    absent = [result(Verdict.NOT_IMPLEMENTED, f"X-{name}", component=name) for name in ("AdamW", "get_batch")]
    found = report(result(Verdict.PASS), result(Verdict.PASS, "LOSS-MEAN", component="cross_entropy"), *absent)
    assert found.conforms
    assert verdict_line(found) == (
        "mypkg conforms to core in 2 of 4 parts (spec 1.0): 2 of 4 clauses pass, 2 not implemented; "
        "not implemented: AdamW, get_batch"
    )
    assert ">core: conforms in 2 of 4 parts, seed 7</text>" in as_badge(found)


def test_a_verdict_on_little_says_so_first_unless_that_was_asked_for(report, result):
    """Catches a pass for three tools of twenty, which reads as one for all of them."""
    absent = [result(Verdict.NOT_IMPLEMENTED, f"X-{name}", component=name) for name in ("AdamW", "get_batch")]
    found = report(result(Verdict.PASS), *absent)
    assert verdict_line(found).startswith("mypkg: nothing wrong found in 1 of 3 parts of core (spec 1.0); ")
    assert is_little(found)
    assert not is_little(replace(found, only=("SDPA",)))
    assert not is_little(replace(found, accounted=True))
    assert not is_little(report(result(Verdict.PASS)))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "core"), ({"without": ("GEN", "COST")}, "core without GEN, COST"), ({"only": ("SDPA",)}, "SDPA of core"),
        ({"only": ("SDPA", "MHA"), "without": ("MHA-T1",)}, "SDPA, MHA of core without MHA-T1"),
        ({"only": tuple("ABCDEF")}, "A, B, C, D, E, F of core"), ({"only": tuple("ABCDEFG")}, "1 clause of core"),
        ({"only": tuple("ABCDEF"), "live": True}, "A, B, C, D, E, F of core"),
        ({"only": tuple("ABCDEFG"), "live": True}, "what core asks of it"),
    ],
)  # fmt: skip
def test_what_was_asked_for_is_told_by_name_while_it_is_short(report, result, asked, said):
    """Would break if a long list of prefixes filled the verdict, or a short one were only counted."""
    assert scope(replace(report(result(Verdict.PASS)), **asked)) == said


def declared(kind, component="MultiHeadAttention"):
    return Excuse(kind, f"components.{component}.{kind}", component, "declared")


@pytest.mark.parametrize(
    ("excuses", "said"),
    [
        ([declared("weights")], ["1 declaration of values that belong in the code"]),
        ([declared("weights"), declared("ignore")], ["2 declarations of values that belong in the code"]),
        ([declared("further")], ["1 declaration of calls that are not the contract's"]),
        ([declared("path")], ["not judged as it stands: MultiHeadAttention"]),
        ([declared("weights"), declared("defaults"), declared("path", "FeedForward")],
         ["1 declaration of values that belong in the code", "1 declaration of calls that are not the contract's",
          "not judged as it stands: FeedForward"]),
    ],
)  # fmt: skip
def test_with_strict_each_kind_of_declaration_is_an_obstacle_of_its_own(report, result, excuses, said):
    """Would break if what stands in for the code counted as a value, or a kind were forgotten."""
    found = report(result(Verdict.PASS), excuses=excuses)
    assert obstacles(replace(found, strict=True)) == said
    assert obstacles(found) == []
    assert excuse_lines(found) == [line for _, line in told_excuses(found)]
    assert len(excuse_lines(found)) == len(excuses)


@pytest.mark.parametrize(
    ("found", "component", "words"),
    [("MultiHeadAttention", "", "found"), ("MultiHeadAttention", "FeedForward", "declared"), ("", "", "declared")],
    ids=["all-found", "one-declared", "nothing-found"],
)
def test_what_a_run_found_is_not_called_declared(report, result, found, component, words):
    """Would break if a number format that a run had read off were said to be declared where there is no file."""
    excuses = [declared("dtypes", ""), *([declared("masks", component)] if component else [])]
    told = report(result(Verdict.PASS), excuses=excuses, found={found: "gpt:Attention"} if found else {})
    assert told_excuses(told)[0][0] == words
    assert ("within what was found" in verdict_line(told)) is (words == "found")


@pytest.mark.parametrize(("further", "folded"), [(1, False), (2, True)], ids=["a few", "many"])
def test_many_found_limits_are_one_line_and_what_changes_numbers_stays(report, result, further, folded):
    """Would break if thirty lines of settings stood before a student's first failure, or one hid a factor."""
    few = [declared("limits", "FeedForward"), declared("masks"), *[declared("constants")] * further]
    parts = dict.fromkeys(("MultiHeadAttention", "FeedForward"), "gpt:Part")
    told = report(result(Verdict.PASS), excuses=[declared("weights"), *few], found=parts)
    shown = told_excuses(told, folded=True)
    assert len(shown) == (2 if folded else 4)
    assert ("4 limits and settings of FeedForward, MultiHeadAttention" in shown[-1][1]) == folded
    assert told_excuses(told)[0] == shown[0]
    assert len(told_excuses(told)) == 3 + further


def test_a_choice_of_a_part_is_shown_where_it_is_not_that_of_the_whole(report, result):
    """Would break if a head said five choices twice."""
    choices = {"activation": "relu", "FeedForward.activation": "relu", "FeedForward.ffn_bias": True}
    told = report(result(Verdict.PASS), variant=choices)
    assert variant_line(told) == "FeedForward.ffn_bias = True, activation = relu"


def test_what_the_variant_does_not_need_is_no_part_that_lacks(report, result):
    found = report(result(Verdict.PASS), result(Verdict.NOT_APPLICABLE, "PE-SHAPE", component="PositionalEncoding"))
    assert "mypkg conforms to core (spec 1.0): 1 of 2 clauses pass" in verdict_line(found)


def test_what_cannot_be_judged_is_no_mistake_and_no_pass(report, result):
    left = result(Verdict.NOT_RUN, "OPT-STEP", component="AdamW", reason="it is not there")
    found = report(result(Verdict.PASS), left, unusable={"AdamW": Unusable("it is not there")})
    assert not found.conforms
    assert verdict_line(found) == (
        "mypkg is judged only in part by core (spec 1.0): 1 not run; cannot be judged: AdamW"
    )
    assert "does not conform" in verdict_line(replace(found, results=[*found.results, result(Verdict.FAIL, "X-Y")]))


@pytest.mark.parametrize(
    ("error", "said", "fix"),
    [
        ("ModuleNotFoundError", "No module named 'nets'", "make the import work where the code is judged"),
        (
            "RuntimeError",
            "The size of tensor a (48) must match the size of tensor b (10)",
            "look at the shapes in the line",
        ),
        ("RuntimeError", "something else", "divide the scores by"),
    ],
    ids=["import", "shapes", "anything-else"],
)
def test_the_fix_of_an_error_speaks_of_that_error(result, error, said, fix):
    """Would break if a module that is missing were mended by what the clause says of numbers."""
    failed = result(Verdict.ERROR, finding=Finding(Kind.UNTRUE, f"it raised {error}: {said}", error=error, said=said))
    ((label, text),) = advice(failed, 3)
    assert label == "fix:"
    assert text.startswith(fix)
