"""Each slip makes of weights and inputs what its name says, in all layers alike, and of nothing else."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest

from conformkit.conformance.assertions.changes import of_inputs, of_weights
from conformkit.conformance.findings.altered import Altered

Q, K, V = (np.arange(9.0).reshape(3, 3) + 10 * number for number in range(3))
WEIGHTS = {
    "blocks.0.q.weight": Q, "blocks.0.k.weight": K, "blocks.1.q.weight": Q + 100, "blocks.1.k.weight": K + 100,
    "up.weight": np.arange(6.0).reshape(3, 2), "norm.weight": np.array([1.0, 2.0]),
    "head.bias": np.array([0.25, -0.25]),
}  # fmt: skip
INPUTS = {
    "x": np.arange(9.0).reshape(1, 3, 3), "y": np.ones((1, 3, 3)), "mask": np.tri(3, dtype=bool),
    "positions": np.arange(3)[None], "shown": np.ones((3, 3), bool),
}  # fmt: skip


def told(found, before):
    """Return what differs with each change, by the change and what it is told with."""
    return {
        (one.change, *one.names): {
            name: one.arrays.get(name)
            for name in before
            if name not in one.arrays or not np.array_equal(one.arrays[name], before[name])
        }
        for one in found
    }


OF_WEIGHTS, OF_INPUTS = told(of_weights(WEIGHTS), WEIGHTS), told(of_inputs(INPUTS, frozenset(INPUTS)), INPUTS)


@pytest.mark.parametrize(
    ("change", "of_the_first"),
    [
        (Altered.ABSENT, np.zeros((3, 3))), (Altered.IDENTITY, np.eye(3)), (Altered.TRANSPOSED, Q.T),
        (Altered.REVERSED, Q[[2, 1, 0]]), (Altered.LATER, Q[[2, 0, 1]]), (Altered.EARLIER, Q[[1, 2, 0]]),
    ],
)  # fmt: skip
def test_a_matrix_is_changed_in_all_layers(change, of_the_first):
    """Would break if a shift went the other way, or one layer alone were changed."""
    found = OF_WEIGHTS[change, "`blocks.….q.weight`"]
    assert list(found) == ["blocks.0.q.weight", "blocks.1.q.weight"]
    assert np.array_equal(found["blocks.0.q.weight"], of_the_first)


def test_layers_may_share_one_matrix():
    found = OF_WEIGHTS[Altered.SHARED, "`blocks.….k.weight`"]
    assert list(found) == ["blocks.1.k.weight"]
    assert np.array_equal(found["blocks.1.k.weight"], K)


def test_one_part_stands_for_another_or_both_are_exchanged():
    one, other = "`blocks.….k`", "`blocks.….q`"
    assert list(OF_WEIGHTS[Altered.OTHER, one, other]) == ["blocks.0.k.weight", "blocks.1.k.weight"]
    assert np.array_equal(OF_WEIGHTS[Altered.OTHER, other, one]["blocks.1.q.weight"], K + 100)
    both = OF_WEIGHTS[Altered.EXCHANGED, one, other]
    assert np.array_equal(both["blocks.0.q.weight"], K)
    assert np.array_equal(both["blocks.1.k.weight"], Q + 100)
    changes = [change for change, *_ in OF_WEIGHTS]
    assert [change for change, _ in groupby(changes)][-2:] == [Altered.OTHER, Altered.EXCHANGED]
    assert (changes.count(Altered.OTHER), changes.count(Altered.EXCHANGED)) == (2, 1)


def test_what_has_no_such_change_is_not_tried():
    """Would break if a matrix that is not square were transposed, or a factor left out as zeros."""
    assert [change for change, name in ((c, n) for c, n, *_ in OF_WEIGHTS) if name == "`up.weight`"] == [
        Altered.ABSENT, Altered.REVERSED, Altered.LATER, Altered.EARLIER,
    ]  # fmt: skip
    assert OF_WEIGHTS[Altered.ABSENT, "`norm.weight`"]["norm.weight"].tolist() == [1.0, 1.0]
    assert OF_WEIGHTS[Altered.ABSENT, "`head.bias`"]["head.bias"].tolist() == [0.0, 0.0]
    assert OF_WEIGHTS[Altered.REVERSED, "`norm.weight`"]["norm.weight"].tolist() == [2.0, 1.0]


def test_inputs_are_left_out_only_where_that_says_something_else():
    """Would break if positions that count on from 0, or a mask that hides nothing, were called forgotten."""
    absent = {name: found for (change, name, *_), found in OF_INPUTS.items() if change is Altered.ABSENT}
    assert absent == {name: {name: None} for name in ("x", "y", "mask")}


@pytest.mark.parametrize(
    ("change", "name", "made"),
    [
        (Altered.REVERSED, "x", INPUTS["x"][:, [2, 1, 0]]), (Altered.LATER, "x", INPUTS["x"][:, [2, 0, 1]]),
        (Altered.EARLIER, "x", INPUTS["x"][:, [1, 2, 0]]), (Altered.INVERTED, "mask", ~INPUTS["mask"]),
        (Altered.TRANSPOSED, "mask", INPUTS["mask"].T), (Altered.LATER, "positions", np.array([[2, 0, 1]])),
    ],
)  # fmt: skip
def test_an_input_is_changed_along_its_positions(change, name, made):
    found = OF_INPUTS[change, name]
    assert list(found) == [name]
    assert np.array_equal(found[name], made)


def test_inputs_of_one_shape_and_format_may_be_exchanged():
    assert list(OF_INPUTS[Altered.EXCHANGED, "x", "y"]) == ["x", "y"]
    assert np.array_equal(OF_INPUTS[Altered.OTHER, "mask", "shown"]["mask"], INPUTS["shown"])
    assert (Altered.OTHER, "x", "mask") not in OF_INPUTS
