"""The excerpt of two arrays contains the largest error; there is none if there is nothing to show."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.assertions.checks import Compared
from conformkit.conformance.assertions.excerpts import COLUMNS, ROWS, excerpt
from conformkit.conformance.engine.judge import _shown


@given(shape=st.lists(st.integers(1, 20), min_size=1, max_size=4).filter(lambda s: math.prod(s) > 1), data=st.data())
def test_the_worst_entry_is_in_the_window(shape, data):
    want = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    at = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    got = want.copy()
    got[at] += 0.25
    shown = excerpt(got, want, 0.1)
    assert shown.at == at
    row, column = (at if len(at) > 1 else (0, *at))[-2:]
    inside = row - shown.first[0], column - shown.first[1]
    assert shown.got[inside[0]][inside[1]] == got[at]
    assert shown.want[inside[0]][inside[1]] == want[at]
    assert len(shown.got) == min(ROWS, shape[-2] if len(shape) > 1 else 1)
    assert {len(rows) for rows in (*shown.got, *shown.want)} == {min(COLUMNS, shape[-1])}


def test_what_is_not_finite_is_worse_than_what_is_far_off():
    want = np.zeros((3, 4))
    got = want.copy()
    got[0, 0], got[2, 3] = 1e9, np.nan
    assert excerpt(got, want).at == (2, 3)


def test_a_mask_is_cut_like_the_arrays_that_it_hides_parts_of():
    got = np.zeros((3, 20, 30))
    got[2, 17, 25] = 1.0
    shown = excerpt(got, np.zeros_like(got), hidden=np.add.outer(np.arange(20), np.arange(30)) % 7 == 0)
    row, column = shown.first
    assert (len(shown.hidden), len(shown.hidden[0])) == (ROWS, COLUMNS)
    assert shown.hidden[1] == tuple((row + 1 + column + c) % 7 == 0 for c in range(COLUMNS))
    assert excerpt(got, np.zeros_like(got)).hidden == ()


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (np.float64(1.0), np.float64(2.0)),
        (np.ones(1), np.zeros(1)),
        (np.ones((2, 3)), np.ones((3, 2))),
        (np.ones(3, np.complex128), np.ones(3, np.complex128)),
        (np.array(["a", "b"]), np.array(["a", "c"])),
    ],
    ids=["a-number", "one-entry", "other-shapes", "complex", "words"],
)
def test_where_there_is_nothing_to_see_nothing_is_shown(got, want):
    assert excerpt(got, want) is None


def test_arrays_that_should_differ_are_not_shown_as_wanted():
    same = np.ones((2, 2))
    assert _shown(Compared(same, same, alike=True)) is None
    assert _shown(Compared(same, 2 * same)) is not None
    assert _shown(None) is None
