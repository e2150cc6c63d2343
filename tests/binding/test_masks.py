"""Masks of an encoder-decoder in the forms that implementations take."""

from __future__ import annotations

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.binding.masks import (
    FORMS,
    KNOWN,
    MASKS,
    SHAPES,
    MaskForm,
    formed,
    masks_of,
    queries_of,
)

REAL = np.array([[True, True, True, False], [True, True, True, True]])
KEYS = REAL[:, None, None, :]
TARGET = KEYS & np.tri(4, dtype=bool)
SIZES = {"B": 2, "H": 3, "1": 1}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_has_the_axes_that_it_says_and_keeps_what_is_hidden(shape):
    got = formed(TARGET if shape.endswith("T T") else KEYS, MaskForm(shape=shape), queries=4, heads=3)
    want = [SIZES.get(axis, 4) for axis in shape.split()]
    assert list(got.shape) == want
    hidden = np.broadcast_to(got, np.broadcast_shapes(got.shape, (4,)))[..., 0, :] if shape == "T T" else got
    assert (~hidden).any()


def test_padding_is_expanded_to_all_queries():
    got = formed(KEYS, MaskForm(shape="B T T"), queries=5, heads=1)
    assert got.shape == (2, 5, 4)
    assert (got == REAL[:, None]).all()


def test_polarity_and_kind_are_those_declared():
    assert (formed(KEYS, MaskForm(true="hide"), queries=1, heads=1) == ~KEYS).all()
    added = formed(KEYS, MaskForm(kind="float"), queries=1, heads=1)
    assert (added[KEYS] == 0).all()
    assert np.isneginf(added[~KEYS]).all()
    ones = formed(KEYS, MaskForm(kind="int"), queries=1, heads=1)
    assert ones.dtype == np.int64
    assert (ones == KEYS).all()


def test_separate_masks_of_torch_come_from_the_masks_of_the_contract():
    used = frozenset({"tgt_padding", "memory_padding", "causality"})
    found = masks_of({"src_mask": KEYS, "tgt_mask": TARGET}, used)
    assert (found["tgt_padding"][:, 0, 0] == REAL).all()
    assert (found["memory_padding"] == KEYS).all()
    assert (found["causality"][0, 0] == np.tri(4, dtype=bool)).all()


def test_only_what_a_call_uses_is_passed():
    assert masks_of({"src_mask": KEYS, "tgt_mask": TARGET}, frozenset({"src"})) == {}
    assert list(masks_of({"mask": KEYS}, frozenset({"mask"}))) == ["mask"]


def test_queries_are_the_target_s_except_of_the_source_s_own_mask():
    inputs = {"src": np.zeros((2, 7)), "tgt": np.zeros((2, 4))}
    assert queries_of("src_mask", inputs) == 7
    assert queries_of("tgt_mask", inputs) == queries_of("memory_mask", inputs) == 4


def test_numbers_of_keys_say_what_is_hidden_at_the_end():
    lengths = MaskForm(kind="lengths")
    assert formed(KEYS, lengths, queries=4, heads=1).tolist() == [3, 4]
    assert formed(np.tri(3, dtype=bool)[None, None], lengths, queries=3, heads=1).tolist() == [[1, 2, 3]]


@pytest.mark.parametrize("row", [[False, True, True], [True, False, True], [False, False, False]])
def test_a_clause_that_hides_anything_else_does_not_apply_to_numbers_of_keys(row):
    with pytest.raises(NotApplicable, match="number of valid positions"):
        formed(np.array(row)[None, None, None], MaskForm(kind="lengths"), queries=1, heads=1)


@pytest.mark.parametrize("true", ["attend", "hide"])
@pytest.mark.parametrize("kind", ["bool", "int", "float"])
def test_what_is_passed_is_read_as_it_was_meant(kind, true):
    """Would break if True were turned in one direction alone; what is added to scores means the same under both."""
    form = MaskForm(kind=kind, true=true)
    read = form.visible(form.passed(TARGET))
    assert ((np.isfinite(read) if kind == "float" else read) == TARGET).all()


@pytest.mark.parametrize(
    ("argument", "name"),
    [
        ("src_key_padding_mask", "src_padding"), ("tgt_key_padding_mask", "tgt_padding"),
        ("memory_key_padding_mask", "memory_padding"), ("memory_padding", "memory_padding"),
        ("key_padding_mask", "padding"), ("valid_lens", "lengths"),
        ("src_lengths", "src_lengths"), ("tgt_lens", "tgt_lengths"), ("enc_valid_lens", "memory_lengths"),
    ],
)  # fmt: skip
def test_arguments_are_known_by_what_torch_and_lectures_call_them(argument, name):
    """Would break if the padding of the memory were passed as that of the target."""
    assert KNOWN[argument] == name
    assert (FORMS[name].kind == "lengths") is name.endswith("lengths")


def test_separate_masks_are_passed_as_torch_reads_them_and_whole_ones_as_the_contract_does():
    """Would break if a layer of torch got what may be attended where it expects what is hidden."""
    forms = {name: (FORMS[name].kind, FORMS[name].true, FORMS[name].shape) for name in FORMS}
    for name in ("padding", "src_padding", "tgt_padding", "memory_padding"):
        assert forms[name] == ("bool", "hide", "B T")
    assert forms["causality"] == ("bool", "hide", "T T")
    assert {forms[name] for name in MASKS} == {("bool", "attend", "")}
