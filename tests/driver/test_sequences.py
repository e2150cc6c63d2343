"""Calls of code without a batch axis: one for each sequence, and their results as one."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.driver.wire.arrays import OutputError
from conformkit.conformance.driver.worker.frameworks.numpy import Numpy
from conformkit.conformance.driver.worker.outputs import describe, pick
from conformkit.conformance.driver.worker.sequences import rows, stacked

X = np.arange(6.0).reshape(2, 3)
ONE = np.ones((1, 3))
FRAMEWORK = Numpy()
Pair = namedtuple("Pair", "a b")  # noqa: PYI024


def calls(**arrays):
    return [{n: a.tolist() for n, a in call.items()} for call in rows(arrays, arrays, list(arrays), FRAMEWORK)]


def test_each_sequence_is_one_call_and_an_axis_of_one_is_for_all():
    assert calls(x=X) == [{"x": [0.0, 1.0, 2.0]}, {"x": [3.0, 4.0, 5.0]}]
    assert [call["mask"] for call in calls(x=X, mask=ONE)] == [[1.0, 1.0, 1.0]] * 2
    shared = list(rows({"x": X, "p": X}, {"x": X, "p": X}, ["x"], FRAMEWORK))
    assert shared[1]["p"] is X


def test_different_numbers_of_sequences_are_refused():
    with pytest.raises(ValueError, match="mask is for 3 sequences, x has 2"):
        calls(x=X, mask=np.ones((3, 3)))


def test_an_empty_batch_keeps_the_shape_of_an_entry():
    assert calls(x=np.ones((0, 3))) == [{"x": [0.0, 0.0, 0.0]}]
    assert stacked([X], FRAMEWORK, empty=True).shape == (0, 2, 3)


def test_results_are_stacked_whatever_holds_them():
    assert stacked([X, X], FRAMEWORK).shape == (2, 2, 3)
    assert stacked([Pair(X, None)] * 3, FRAMEWORK).a.shape == (3, 2, 3)
    assert stacked([{"logits": (X, X)}] * 2, FRAMEWORK)["logits"][1].shape == (2, 2, 3)
    assert stacked([SimpleNamespace(out=X)] * 2, FRAMEWORK).out.shape == (2, 2, 3)
    assert stacked([[1, 2], [3, 4]], FRAMEWORK) == [[1, 2], [3, 4]]
    assert stacked([[1, 2]], FRAMEWORK, empty=True) == []
    assert stacked([None, None], FRAMEWORK) is None


@pytest.mark.parametrize("row", [[1.0, 2.0], [np.float32(1), np.float32(2)], [[1.0], [2.0]]])
def test_lists_within_lists_are_one_array_for_each_sequence(row):
    result = stacked([[row] * 3] * 2, FRAMEWORK)
    assert np.shape(pick(result, None, FRAMEWORK.is_array)["out"])[:3] == (2, 3, 2)
    assert describe(result, FRAMEWORK.is_array) == "numbers"


def test_results_that_differ_are_refused():
    with pytest.raises(OutputError, match=r"differ in shape or kind: ndarray\[1, 3\], ndarray\[2, 3\]"):
        stacked([X, ONE], FRAMEWORK)
    with pytest.raises(OutputError, match="differ"):
        stacked([X, 3.0], FRAMEWORK)
