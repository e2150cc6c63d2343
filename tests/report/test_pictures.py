"""Cells of the pictures: one scale for actual and wanted values, marks for entries that are too far off."""

import math

import pytest

from conformkit.conformance.assertions.excerpts import Excerpt
from conformkit.conformance.report.pictures import legend, panels, place


def of(got, want, allowed=0.1, shape=(2, 3), at=(0, 0), first=(0, 0), hidden=()):
    return Excerpt(got, want, allowed, shape, at, first, hidden)


def test_colors_of_yours_and_wanted_can_be_compared():
    yours, wanted, _ = panels(of(((4.0, -2.0),), ((2.0, -2.0),)))
    strengths = [cell.strength for cell in (*yours.cells, *wanted.cells)]
    assert strengths[0] == max(strengths)
    assert strengths[1] == strengths[2] == strengths[3] < strengths[0]
    assert [cell.kind for cell in yours.cells] == ["positive", "negative"]


def test_errors_are_marked_in_the_result_and_in_the_difference():
    yours, wanted, difference = panels(of(((1.0, 1.05, 3.0),), ((1.0, 1.0, 1.0),)))
    assert [cell.off for cell in yours.cells] == [cell.off for cell in difference.cells] == [False, False, True]
    assert not any(cell.off for cell in wanted.cells)
    assert yours.told == "1 by 3 numbers, from 1 to 3, 1 of them too far off"
    assert wanted.told == "1 by 3 numbers, from 1 to 1"


def test_hidden_entries_are_marked_in_both_maps_and_described_in_text():
    shown = of(((0.5, 0.5), (0.5, 0.0)), ((0.5, 0.0), (0.5, 0.0)), hidden=((False, True), (False, True)))
    yours, wanted, difference = panels(shown)
    assert [cell.hidden for cell in yours.cells] == [cell.hidden for cell in wanted.cells] == [False, True] * 2
    assert [cell.hidden and cell.off for cell in yours.cells] == [False, True, False, False]
    assert not any(cell.hidden for cell in difference.cells)
    assert (
        yours.told == "2 by 2 numbers, from 0 to 0.5, 1 of them too far off; the mask hides 2, of which 1 are visible"
    )
    assert wanted.told == "2 by 2 numbers, from 0 to 0.5; the mask hides 2"
    assert "hatched" in legend(shown)
    assert "hatched" not in legend(of(((1.0,),), ((2.0,),)))


def test_nan_has_a_separate_mark_and_no_part_in_the_scale():
    yours, wanted, difference = panels(of(((math.nan, 1.0),), ((0.0, 1.0),)))
    assert [cell.kind for cell in yours.cells] == ["odd", "positive"]
    assert [cell.kind for cell in wanted.cells] == ["zero", "positive"]
    assert difference.cells[0].off
    assert "from 1 to 1" in yours.told


def test_pictures_of_nothing_finite_can_be_drawn():
    for panel in panels(of(((math.inf, math.nan),), ((math.inf, math.nan),))):
        assert "none of them is finite" in panel.told


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (of(((1.0,) * 3,) * 2, ((2.0,) * 3,) * 2), "of 2 × 3 entries"),
        (of(((1.0,) * 3,), ((2.0,) * 3,), shape=(3,)), "of 3 entries"),
        (of(((1.0,) * 3,) * 2, ((2.0,) * 3,) * 2, shape=(5, 2, 3), at=(4, 1, 0)), "of 5 × 2 × 3 entries, matrix [4]"),
        (
            of(((1.0,) * 3,) * 2, ((2.0,) * 3,) * 2, shape=(9, 30), at=(4, 21), first=(4, 20)),
            "of 9 × 30 entries, rows 4 to 5, columns 20 to 22",
        ),
    ],
    ids=["whole", "row", "of-a-batch", "window"],
)
def test_the_reader_is_told_which_part_it_is(shown, words):
    assert place(shown) == words
