import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.apps.grade.outputs.overview import FLOOR, TOP, WIDTH, bars
from conformkit.conformance.apps.grade.outputs.statistics import figures
from conformkit.conformance.apps.grade.record import Group
from conformkit.conformance.defects import defects
from conformkit.conformance.engine.results import Certainty, Verdict
from tests.apps.grade.outputs.samples import likeness, report, result


def test_scores_fall_into_tenths_and_full_points_into_the_last(graded, lost):
    class_ = [graded(points=p, max_points=10.0) for p in (0.0, 0.99, 1.0, 7.0, 10.0)] + [lost]
    found = figures(class_)
    assert [b.count for b in found.bins] == [3, 1, 0, 0, 0, 0, 0, 1, 0, 1]
    assert (found.lowest, found.highest) == (0.0, 1.0)
    assert found.outcomes == {"judged": 5, "not loaded": 1}


@given(st.lists(st.floats(0.0, 1.0), max_size=30))
def test_every_score_is_counted_once(shares):
    from conformkit.conformance.apps.grade.outputs.statistics import _bins

    assert sum(one.count for one in _bins(shares)) == len(shares)


@pytest.mark.parametrize("tenth", range(11))
def test_a_score_on_a_border_belongs_to_the_upper_tenth(tenth):
    from conformkit.conformance.apps.grade.outputs.statistics import _bins

    (hit,) = [one for one in _bins([tenth * 0.1]) if one.count]
    assert hit.low == min(10 * tenth, 90)


def test_a_group_s_mean_is_over_those_to_whom_it_applies(graded):
    whole, nothing, none = (Group("g", "G", p, m, 2, 1) for p, m in ((4.0, 4.0), (0.0, 4.0), (0.0, 0.0)))
    (group,) = figures([graded(groups=(g,)) for g in (whole, nothing, none)]).groups
    assert (group.mean, group.whole, group.nothing, group.points) == (0.5, 1, 1, 4.0)


def test_clauses_are_counted_by_what_became_of_them(graded):
    verdicts = [Verdict.FAIL, Verdict.CRASH, Verdict.BLOCKED, Verdict.NOT_IMPLEMENTED, Verdict.PASS]
    class_ = [graded(report=report(result("SDPA-SCALE", verdict))) for verdict in verdicts]
    class_.append(graded(report=report(result("SDPA-SCALE", Verdict.NOT_APPLICABLE))))
    (clause,) = figures(class_).clauses
    assert (clause.id, clause.red, clause.blocked, clause.missing, clause.judged) == ("SDPA-SCALE", 2, 1, 1, 5)


def test_the_clause_that_fails_most_comes_first(graded):
    often = [graded(report=report(result("SDPA-SCALE", Verdict.FAIL), result("SDPA-OUT-SHAPE"))) for _ in range(3)]
    rare = [graded(report=report(result("SDPA-SCALE"), result("SDPA-OUT-SHAPE", Verdict.FAIL)))]
    assert [c.id for c in figures(rare + often).clauses] == ["SDPA-SCALE", "SDPA-OUT-SHAPE"]


@pytest.mark.parametrize("hints", [1, 2, 3])
def test_a_mistake_is_counted_once_a_submission_and_called_by_its_name(graded, hints):
    twice = [result(name, Verdict.FAIL, looks_like=(likeness(),)) for name in ("SDPA-SCALE", "SDPA-OUT-SHAPE")]
    (mistake,) = figures([graded(report=report(*twice, hints=hints))] * 2).mistakes
    assert (mistake.title, mistake.sure, mistake.possible) == (defects()["sdpa-no-scale"].title, 2, 0)


@pytest.mark.parametrize(("certainty", "counted"), [(Certainty.UNSURE, (0, 1)), (Certainty.EXACT, (1, 0))])
def test_mistakes_that_give_the_same_numbers_are_one_cause_of_a_person(graded, certainty, counted):
    """Two people who divided by d_k were four: each mistake that gives these numbers was counted."""
    others = [name for name in defects() if name.startswith("sdpa-")][:3]
    alike = tuple(likeness(certainty, name) for name in others)
    (found,) = figures([graded(report=report(result("SDPA-SCALE", Verdict.FAIL, looks_like=alike), hints=3))]).mistakes
    first, second = sorted(defects()[name].title for name in others)[:2]
    assert (found.title, found.sure, found.possible) == (f"{first} or {second}, or another", *counted)


def test_what_is_less_sure_is_no_second_cause(graded):
    sure, unsure = (
        likeness(kind, n) for kind, n in zip((Certainty.EXACT, Certainty.UNSURE), sorted(defects()), strict=False)
    )
    (found,) = figures(
        [graded(report=report(result("SDPA-SCALE", Verdict.FAIL, looks_like=(sure, unsure)), hints=3))]
    ).mistakes
    assert (found.sure, found.possible) == (1, 0)


def test_a_class_without_points_or_reports_has_figures(lost, graded):
    found = figures([lost, graded(max_points=0.0, points=0.0, report=None, groups=())])
    assert (found.clauses, found.mistakes, found.median) == ((), (), 0.0)


def test_bars_stand_on_the_floor_and_the_tallest_is_as_high_as_there_is_room(graded):
    made = bars(figures([graded(points=p, max_points=10.0) for p in (1.0, 1.0, 9.0)]).bins)
    assert all(bar.y + bar.height == pytest.approx(FLOOR) for bar in made)
    assert min(bar.y for bar in made) == TOP
    assert max(bar.height for bar in made) == 2 * next(bar.height for bar in made if bar.bin.count == 1)
    assert 0 <= made[0].x < made[-1].x + made[-1].width <= WIDTH


def test_an_empty_picture_has_no_height():
    assert {bar.height for bar in bars(figures([]).bins)} == {0.0}
