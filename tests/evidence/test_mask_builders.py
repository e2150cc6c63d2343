"""How masks that functions return are read, and how shares of chosen ids are judged."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.masks import MaskForm
from conformkit.conformance.evidence.mask_builders import Builder, masks_of, of_keys, of_pairs
from conformkit.conformance.evidence.masking import check_share
from conformkit.spec.masked_language import Share, shares

SEEN = np.array([[True, True, False], [True, False, False]])
INFINITE = float("inf")


def reader(**form):
    return Builder(SimpleNamespace(bound=SimpleNamespace(mask=MaskForm(**form))))


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ({}, SEEN),
        ({"true": "hide"}, ~SEEN),
        ({}, SEEN.astype(int)),
        ({}, SEEN.astype(float)),
        ({"kind": "float"}, np.where(SEEN, 0.0, -INFINITE)),
        ({"true": "hide"}, np.where(SEEN, 0.0, -1e9)),
    ],
    ids=["truth-values", "hiding", "integers", "fractions", "infinite", "large"],
)
def test_a_mask_is_read_however_it_is_written(form, value):
    assert (reader(**form)("the mask", value.tolist()) == SEEN).all()


def test_additive_zeros_alone_hide_nothing():
    assert reader(kind="float")("the mask", [[0.0, 0.0]]).all()


@pytest.mark.parametrize(
    ("shown", "seen"), [([[0.0, 1.0]], False), ([[0.0, -INFINITE]], True)], ids=["counts", "added"]
)
def test_zeros_alone_are_read_as_masks_that_hide_something(shown, seen):
    """Would break if zeros of a builder whose ones hide were taken for numbers that are added."""

    class Shown(SimpleNamespace):
        def __call__(self, **_):
            return shown

    tool = Shown(name="create_padding_mask", bound=SimpleNamespace(mask=MaskForm()))
    assert Builder(tool)("the mask", [[0.0, 0.0]]).all() == seen


@pytest.mark.parametrize("value", [[[0.5, 1.0]], [[0.0, -1.0]], [["a"]], 3, [[1], [1, 2]]], ids=str)
def test_a_value_that_is_not_a_mask_is_refused(value):
    with pytest.raises(ClauseFailure):
        reader()("the mask", value)


@pytest.mark.parametrize("axes", [(2, 3), (2, 1, 3), (2, 1, 1, 3)], ids=str)
def test_axes_between_rows_and_keys_may_be_missing(axes):
    assert (of_keys("the mask", SEEN.reshape(axes), 2, 3) == SEEN).all()


def test_repeated_axes_are_taken_and_others_refused():
    full = np.repeat(SEEN[:, None, None], 4, axis=2)
    assert (of_keys("the mask", full, 2, 3) == SEEN).all()
    full[0, 0, 1, 0] = False
    with pytest.raises(ClauseFailure, match="not the same for every query"):
        of_keys("the mask", full, 2, 3)
    with pytest.raises(ClauseFailure, match="has shape"):
        of_keys("the mask", SEEN.T, 2, 3)


def test_a_visibility_map_has_a_row_for_each_query():
    square = np.tri(3, dtype=bool)
    assert of_pairs("the mask", square[None, None], 1, 3).shape == (1, 3, 3)
    with pytest.raises(ClauseFailure):
        of_pairs("the mask", square, 1, 3)


def test_masks_come_as_a_pair_or_by_name():
    assert masks_of({"tgt_mask": 2, "memory_mask": 3, "src_mask": 1}) == [1, 2, 3]
    assert masks_of([1, 2]) == [1, 2]
    with pytest.raises(ClauseFailure):
        masks_of([1])


@pytest.mark.parametrize(("hits", "holds"), [(150, True), (185, True), (260, False), (60, False)], ids=str)
def test_a_share_is_wrong_where_chance_does_not_explain_it(hits, holds):
    def judge():
        check_share("chosen", hits, 1000, Share(0.15, 0.15), events=1)

    if holds:
        judge()
    else:
        with pytest.raises(ClauseFailure):
            judge()


def test_anything_within_the_interval_holds():
    for hits in (500, 550, 600):
        check_share("drawn", hits, 1000, Share(0.5, 0.6), events=1)


def test_what_becomes_of_the_chosen_adds_up_to_all():
    for found in (shares(1000, 4), shares(50, 1)):
        assert sum(share.low for share in found.values()) <= 1.0 <= sum(share.high for share in found.values())
