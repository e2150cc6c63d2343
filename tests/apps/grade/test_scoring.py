import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.apps.grade.parts import part_of
from conformkit.conformance.apps.grade.policy import Allowed, GroupPolicy, Losses, Policy
from conformkit.conformance.apps.grade.record import Grade, Submission, SubmissionOutcome
from conformkit.conformance.apps.grade.scoring import excuses, rescored, score
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.findings.outline import SENSELESS
from conformkit.conformance.report.json_report import as_object
from conformkit.spec.clauses import Level, clauses, clauses_of

NAMES = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA", "SDPA-GRAD")
TWO = (
    GroupPolicy("first", "First", 10, NAMES[:2]),
    GroupPolicy("second", "Second", 30, NAMES[2:]),
)
PASS, FAIL, SILENT = Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE


def report(**verdicts):
    """Return a report with these verdicts, by number of the clause."""
    results = [Result(clauses()[NAMES[int(n[1:])]], verdict) for n, verdict in verdicts.items()]
    return Report("x", "x", "numpy", results=results, complete=True)


def never(clause):
    return False


def always(clause):
    return True


def test_nothing_judged_is_nothing_got():
    found = score(report(), Policy(groups=TWO), never)
    assert (found.points, found.max_points) == (0, 40)
    assert found.groups[0].failed == NAMES[:2]


def test_points_are_shared_equally_by_the_clauses_of_a_group():
    found = score(report(c0=PASS, c1=FAIL, c2=PASS, c3=PASS), Policy(groups=TWO), never)
    assert found.points == 35
    assert [(g.points, g.passed, g.clauses, g.failed) for g in found.groups] == [
        (5, 1, 2, ("SDPA-SCALE",)), (30, 2, 2, ()),
    ]  # fmt: skip


PARTS = {
    "SDPA-OUT-SHAPE": PASS, "SDPA-SCALE": FAIL, "SDPA-WEIGHTS-SUM": PASS, "SDPA-SIZES": Verdict.BLOCKED,
    "MASK-NONE": PASS,
}  # fmt: skip
"""Five parts: shapes, scores, softmax, the whole, mask."""


def by_parts(verdicts, *, cap=1.0, blocked="own", by="SDPA-SCALE"):
    results = [
        Result(clauses()[name], verdict, blocked_by=by if verdict is Verdict.BLOCKED else "")
        for name, verdict in verdicts.items()
    ]
    made = Report("x", "x", "numpy", results=results, complete=True)
    group = GroupPolicy("g", "G", 10, tuple(verdicts), credit="parts", cap=cap)
    return score(made, Policy(groups=(group,), blocked=blocked), never).groups[0]


def test_points_follow_the_parts_that_work_and_what_waits_for_the_same_component_gives_nothing():
    found = by_parts(PARTS)
    assert found.points == 6
    assert found.why[0] == "3 of 5 parts work; not: scores, the whole"


def test_what_fails_limits_a_group_and_what_only_waits_does_not():
    assert by_parts(PARTS, cap=0.5).points == 5
    assert any("at most 50 %" in line for line in by_parts(PARTS, cap=0.5).why)
    assert by_parts({**PARTS, "SDPA-SCALE": PASS}, cap=0.5, by="MHA-SHAPE").points == 9


def test_a_side_part_counts_and_caps_nothing():
    found = by_parts({**PARTS, "SDPA-SCALE": PASS, "SDPA-SIZES": PASS, "ERRH-QK-DIM": FAIL}, cap=0.5)
    assert found.points == pytest.approx(50 / 6)


def test_an_option_that_is_not_there_costs_its_part_and_another_lack_is_a_failure():
    """Would break if a `generate` without top_p cost half of a model, or attention without masks next to nothing."""
    whole = {**PARTS, "SDPA-SCALE": PASS, "SDPA-SIZES": PASS, "GEN-LENGTH": PASS}
    assert by_parts({**whole, "GEN-TOPP-UNSORT": SILENT}, cap=0.5).points == pytest.approx(50 / 6)
    assert by_parts({**whole, "GEN-TOPP-UNSORT": FAIL}, cap=0.5).points == 5
    assert by_parts({**whole, "MASK-NONE": SILENT}, cap=0.5).points == 5


def test_an_option_that_is_not_there_is_told_with_the_key_that_allows_it():
    """Would break if a reader had to know which argument eight clauses are about."""
    silent = ("GEN-TOPP-UNSORT", "GEN-TOPP-ONE", "MASK-NONE")
    results = [Result(clauses()[name], SILENT) for name in silent]
    made = Report("x", "x", "numpy", results=results, complete=True)
    notes = score(made, Policy(groups=(GroupPolicy("g", "G", 10, silent),)), never).notes
    assert notes[0].startswith("generate takes no top_p: 2 clauses about it count as not passed")
    assert 'lacking = ["top-p"]' in notes[0]
    assert notes[1].endswith(": MASK-NONE")


def test_what_waits_for_another_component_counts_half_but_never_more_than_what_works():
    assert by_parts(PARTS, by="MHA-SHAPE").points == 7
    assert by_parts(dict.fromkeys(PARTS, Verdict.BLOCKED), by="MHA-SHAPE").points == 0


@pytest.mark.parametrize(("blocked", "points"), [("nothing", 6), ("half", 7), ("free", 7.5)])
def test_blocked_parts_count_as_the_policy_says(blocked, points):
    assert by_parts(PARTS, blocked=blocked).points == points


def test_every_part_of_attention_is_one_that_a_student_would_name():
    attention = clauses_of("core").values()
    named = {part_of(c) for c in attention if c.component == "ScaledDotProductAttention" and c.level is Level.MUST}
    assert {"scores", "softmax and sum of values", "mask", "causal mask"} <= named
    assert len(named) <= 10


def test_all_or_nothing_gives_nothing_for_most():
    group = GroupPolicy("g", "G", 10, NAMES, credit="all")
    most = report(c0=PASS, c1=PASS, c2=PASS, c3=Verdict.BLOCKED)
    assert score(most, Policy(groups=(group,)), never).points == 0
    every = report(c0=PASS, c1=PASS, c2=PASS, c3=PASS)
    assert score(every, Policy(groups=(group,)), never).points == 10


@given(st.lists(st.sampled_from(list(Verdict)), min_size=4, max_size=4), st.integers(0, 3), st.data())
def test_only_a_pass_raises_a_score(verdicts, place, data):
    """Turning a clause that does not pass into another verdict gains nothing; without a pass there are no points."""
    policy = Policy(groups=TWO, blocked="nothing")
    other = data.draw(st.sampled_from([v for v in Verdict if v is not PASS]))
    before = score(report(**{f"c{n}": v for n, v in enumerate(verdicts)}), policy, never)
    verdicts[place] = other
    after = score(report(**{f"c{n}": v for n, v in enumerate(verdicts)}), policy, never)
    assert after.points <= before.points
    assert after.max_points == 40
    if PASS not in verdicts:
        assert after.points == 0


BLOCKED = Verdict.BLOCKED
FOUR = (GroupPolicy("g", "G", 12, NAMES),)


@pytest.mark.parametrize(
    ("blocked", "points"), [("nothing", 3), ("half", 6), ("free", 6)], ids=["nothing", "half", "free"]
)
def test_what_one_failure_blocks_counts_as_the_policy_says(blocked, points):
    """One clause passes, one fails and blocks two."""
    found = report(c0=PASS, c1=FAIL, c2=BLOCKED, c3=BLOCKED)
    found.results[2:] = [replace(result, blocked_by=NAMES[1]) for result in found.results[2:]]
    (group,) = score(found, Policy(groups=FOUR, blocked=blocked), never).groups
    assert group.points == points
    assert group.why[0].startswith("2 clauses blocked by SDPA-SCALE: ")


@given(st.lists(st.sampled_from([v for v in Verdict if v is not PASS]), min_size=4, max_size=4))
@pytest.mark.parametrize("blocked", ["nothing", "half", "free"])
def test_without_a_pass_there_are_no_points_whatever_is_blocked(blocked, verdicts):
    found = score(report(**{f"c{n}": v for n, v in enumerate(verdicts)}), Policy(groups=TWO, blocked=blocked), never)
    assert found.points == 0


def test_lost_points_explain_themselves():
    found = report(c0=PASS, c1=PASS, c2=PASS, c3=Verdict.CRASH)
    every = GroupPolicy("g", "G", 10, NAMES, credit="all")
    (group,) = score(found, Policy(groups=(every,)), never).groups
    assert group.why == ("all or nothing: 1 of 4 do not pass",)
    (group,) = score(found, Policy(groups=FOUR, losses=Losses(crash="group")), never).groups
    assert group.why == ("SDPA-GRAD ended in a crash: no points for this group",)
    (group,) = score(report(c0=PASS, c1=PASS, c2=PASS, c3=PASS), Policy(groups=(every,)), never).groups
    assert group.why == ()


def graded(found, policy, excused=never, **changes):
    counted = score(found, policy, excused)
    return Grade(
        Submission("anna", "anna", "anna.py", "0" * 64), SubmissionOutcome.JUDGED, points=counted.points,
        max_points=counted.max_points, groups=counted.groups, required=counted.required, report=as_object(found),
        notes=("of the archive", *counted.notes), counted=len(counted.notes), excluded=counted.excluded, **changes,
    )  # fmt: skip


def test_stored_verdicts_count_as_fresh_ones_by_every_policy():
    """Would break if a changed policy counted what was stored otherwise than what it judges."""
    found = report(c0=PASS, c1=FAIL, c2=SILENT, c3=PASS)
    policies = [
        Policy(groups=TWO), Policy(groups=FOUR), Policy(groups=(replace(FOUR[0], credit="all", title="New"),)),
        Policy(groups=TWO, required=(NAMES[1],)), Policy(groups=(replace(TWO[0], points=1), TWO[1])),
    ]  # fmt: skip
    assert len({policy.evidence() for policy in policies}) == 1
    for excused in (never, always):
        for before in policies:
            for after in policies:
                again = rescored(graded(found, before, excused), after)
                assert again == graded(found, after, excused), (before, after)


def test_a_submission_that_was_not_judged_is_counted_anew_too():
    stub = Grade(Submission("a", "a", "a", "0" * 64), SubmissionOutcome.NOT_LOADED, max_points=1.0)
    found = rescored(stub, Policy(groups=TWO))
    assert (found.points, found.max_points, [group.name for group in found.groups]) == (0, 40, ["first", "second"])


def test_what_is_stored_can_be_read_back():
    grade = graded(report(c0=PASS, c1=FAIL, c2=SILENT, c3=PASS), Policy(groups=TWO), always)
    assert Grade.from_object(json.loads(grade.as_json())) == grade
    old = json.loads(grade.as_json())
    for group in old["groups"]:
        del group["why"]
    del old["excluded"], old["counted"]
    assert Grade.from_object(old).points == grade.points


def test_what_does_not_apply_is_left_out_only_where_it_is_excused():
    half = report(c0=PASS, c1=SILENT, c2=PASS, c3=SILENT)
    found = score(half, Policy(groups=TWO), never)
    assert found.points == 20
    assert found.notes[0].endswith("unless the policy allows it: SDPA-SCALE, SDPA-GRAD")
    found = score(half, Policy(groups=TWO), always)
    assert (found.points, found.max_points, found.groups[0].clauses) == (40, 40, 1)


def test_an_invalid_reply_gives_nothing_and_is_reported():
    known = report(c0=PASS, c1=Verdict.NOT_RUN)
    known.results[1] = replace(known.results[1], outline=SENSELESS)
    found = score(known, Policy(groups=TWO), always)
    assert found.points == 5
    assert [NAMES[1] in note and "mistake of the kit" in note for note in found.notes] == [True]


def test_a_group_of_which_nothing_applies_counts_for_neither_side():
    found = score(report(c0=PASS, c1=PASS, c2=SILENT, c3=SILENT), Policy(groups=TWO), always)
    assert (found.points, found.max_points, found.groups[1].clauses) == (10, 10, 0)
    assert found.notes == ("no clause of Second applies to the declared variant",)


def test_an_excuse_turns_no_failure_into_anything():
    found = score(report(c0=PASS, c1=FAIL, c2=Verdict.NOT_RUN, c3=Verdict.NOT_IMPLEMENTED), Policy(groups=TWO), always)
    assert (found.points, found.max_points) == (5, 40)


def test_a_required_clause_takes_its_group_or_everything_with_it():
    broken = report(c0=FAIL, c1=PASS, c2=PASS, c3=PASS)
    first = GroupPolicy("first", "First", 10, NAMES[:2], required=(NAMES[0],))
    found = score(broken, Policy(groups=(first, TWO[1])), never)
    assert (found.points, found.groups[0].required) == (30, (NAMES[0],))
    found = score(broken, Policy(groups=TWO, required=(NAMES[0],)), never)
    assert (found.points, found.required, found.groups[1].passed) == (0, (NAMES[0],), 2)
    assert score(report(c0=PASS), Policy(groups=TWO, required=(NAMES[0],)), never).points == 5


def test_a_required_clause_that_was_not_judged_does_not_hold():
    assert score(report(c2=PASS, c3=PASS), Policy(groups=TWO, required=(NAMES[0],)), never).points == 0


@pytest.mark.parametrize(
    ("kind", "loss", "points"),
    [
        ("crash", "clause", 35),
        ("crash", "group", 30),
        ("crash", "all", 0),
        ("timeout", "group", 30),
        ("timeout", "all", 0),
    ],
)
def test_a_crash_or_timeout_costs_what_the_policy_says(kind, loss, points):
    ended = report(c0=Verdict(kind), c1=PASS, c2=PASS, c3=PASS)
    found = score(ended, Policy(groups=TWO, losses=Losses(**{kind: loss})), never)
    assert found.points == points
    assert bool(found.notes) == (loss != "clause")
    other = "timeout" if kind == "crash" else "crash"
    assert score(ended, Policy(groups=TWO, losses=Losses(**{other: "all"})), never).points == 35


def test_a_clause_that_no_points_hang_on_costs_nothing():
    crashed = report(c0=PASS, c1=PASS, c2=PASS, c3=Verdict.CRASH)
    policy = Policy(groups=(TWO[0],), losses=Losses(crash="all"))
    assert score(crashed, policy, never).points == 10


def test_when_time_was_up_what_passed_counts_unless_the_policy_says_otherwise():
    late = report(c0=PASS, c1=PASS, c2=Verdict.NOT_RUN, c3=Verdict.NOT_RUN)
    assert score(late, Policy(groups=TWO), never, out_of_time=True).points == 10
    strict = Policy(groups=TWO, losses=Losses(deadline="zero"))
    assert score(late, strict, never, out_of_time=True).points == 0
    assert score(late, strict, never).points == 10


@pytest.mark.parametrize(
    ("name", "declared", "allowed", "excused"),
    [
        ("SDPA-SCALE", "", Allowed(), False),
        ("SDPA-RETURNS", "", Allowed(), True),
        ("FFN-RELU-ZERO", "", Allowed(), True),
        ("FFN-RELU-ZERO", '[variant]\nactivation = "relu"', Allowed(), False),
        ("FFN-RELU-ZERO", '[components.FeedForward.variant]\nactivation = "relu"', Allowed(), False),
        ("PE-EVEN-SIN", "", Allowed(), False),
        ("PE-EVEN-SIN", '[variant]\npositions = "learned"', Allowed(), True),
        ("MASK-BOOL-POLARITY", "", Allowed(), False),
        ("MASK-BOOL-POLARITY", "", Allowed(lacking=("masks", "bool-masks")), True),
        ("SDPA-SCALE", "", Allowed(not_applicable=("SDPA-SCALE",)), True),
    ],
)
def test_a_clause_is_excused_by_the_variant_by_the_policy_or_by_the_reference(name, declared, allowed, excused):
    config = parse_config(declared)
    assert excuses(config, allowed, always)(clauses()[name]) is excused
    assert excuses(config, allowed, never)(clauses()[name]) is True
