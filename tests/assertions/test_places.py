"""Where an array is wrong is said by the axes that its reader knows, and only where that tells something."""

from __future__ import annotations

import numpy as np
import pytest

from conformkit.conformance.assertions.places import axis_words, region

NAMES = ("rows", "columns")


def words(*rows, extent=9):
    """Return where an array of so many columns is wrong, in words: all columns of these rows."""
    bad = np.zeros((extent, 3), np.bool_)
    bad[list(rows)] = True
    return region(bad, NAMES).words


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([8], "8 (the last)"), ([3], "3"), ([5, 6, 7, 8], "from 5 on"), ([0, 1, 2], "up to 2"), ([2, 3, 4], "2 to 4"),
        ([0, 1, 2, 4, 5, 6, 7, 8], "all but 3"), ([1, 3, 5, 7], "with odd numbers"), ([2, 4, 6, 8], "2, 4, …"),
        ([1, 3, 5], "1, 3, 5"), ([0, 1, 3, 4, 7, 8], "0, 1, 3, 4, 7, 8"),
    ],
)  # fmt: skip
def test_indices_are_told_as_a_person_would(rows, said):
    """Would break if the last row were called by its number alone, or odd ones were listed one by one."""
    assert words(*rows) == f"rows {said}"


def test_of_many_indices_the_first_six_are_listed():
    assert words(0, 1, 3, 4, 6, 7, 9, extent=12) == "rows 0, 1, 3, 4, 6, 7, …"


def test_both_axes_are_told_and_the_part_is_what_is_wrong():
    bad = np.zeros((4, 6), np.bool_)
    bad[2:, :3] = True
    found = region(bad, NAMES)
    assert found.words == "rows from 2 on, columns up to 2"
    assert np.arange(24).reshape(4, 6)[found.index].tolist() == [[12, 13, 14], [18, 19, 20]]


@pytest.mark.parametrize(("share", "said"), [(0.5, "rows from 5 on"), (0.25, "")])
def test_a_part_of_which_most_is_right_says_nothing(share, said):
    """Would break if a few wrong numbers in a corner made a whole block look wrong."""
    bad = np.zeros((9, 8), np.bool_)
    bad[5:, : int(8 * share)] = True
    bad[5:7, 7] = True  # in the same rows, so that all columns between are in the part
    bad[5, :] = True
    assert region(bad, NAMES).words == said


def test_where_everything_is_wrong_nothing_is_said():
    assert region(np.ones((3, 4), np.bool_), NAMES).words == ""


@pytest.mark.parametrize(
    ("label", "ndim", "said"),
    [
        ("output", 3, ("rows of the batch", "positions", "features")), ("parameter", 1, ("entries",)),
        ("parameter", 2, ("rows", "columns")), ("parameter", 3, ("axis 0", "axis 1", "axis 2")),
        ("weights of heads", 4, ("rows of the batch", "heads", "positions", "features")),
        ("output", 5, ("axis 0", "axis 1", "axis 2", "axis 3", "axis 4")),
    ],
)  # fmt: skip
def test_axes_have_names_where_it_is_known_what_they_are(label, ndim, said):
    """Would break if the axes of a parameter were called positions, or an array of five axes ended in an error."""
    assert axis_words(label, ndim) == said
