"""What wrong weights have in common with the right ones is said in numbers that a reader can look for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.apps.port.numbers import alike, resembling, unrelated

RANDOM = np.random.default_rng(3)
SHAPES = {
    "embedding.weight": (8, 5), "positions.weight": (8, 5), "blocks.0.attention.q.weight": (6, 6),
    "blocks.0.attention.k.weight": (6, 6), "blocks.0.attention.v.weight": (6, 6),
    "blocks.0.attention.out.weight": (6, 6),
    "blocks.0.norm1.weight": (6,), "blocks.0.norm2.weight": (6,),
    "blocks.0.feed_forward.experts": (3, 4, 6),
    "head.weight": (80, 5),
}  # fmt: skip
OURS = {name: RANDOM.normal(size=shape).astype(np.float32).astype(np.float64) for name, shape in SHAPES.items()}
RIGHT = SimpleNamespace(
    parameters={
        name: SimpleNamespace(shape=shape, axes="e f m" if name.endswith("experts") else "a b")
        for name, shape in SHAPES.items()
    },
    ours=OURS.__getitem__,
    own={"num_heads": 3, "kv_heads": 3},
)
TABLE, QUERIES, KEYS = "embedding.weight", "blocks.0.attention.q.weight", "blocks.0.attention.k.weight"
OUT, NORM, EXPERTS = "blocks.0.attention.out.weight", "blocks.0.norm1.weight", "blocks.0.feed_forward.experts"
HEAD = "head.weight"
ENDLESS = OURS[NORM].copy()
ENDLESS[2] = np.inf


def said(**wrong):
    """Return what is said of each parameter that is wrong, in one text."""
    arrays = {**OURS, **wrong}
    return "; ".join(found.sentence for found in resembling(RIGHT, arrays.__getitem__, list(wrong)))


def turned(array, by):
    return np.roll(array, by, axis=0)


def filled(rows, value):
    array = OURS[TABLE].copy()
    array[rows] = value
    return array


def heads(order):
    return OURS[QUERIES].reshape(3, 2, 6)[order].reshape(6, 6)


CASES = [
    (NORM, ENDLESS, "not all numbers are finite"), (NORM, np.ones(6), "every number is 1, as before training"),
    (NORM, OURS[NORM][::-1], "the right numbers in another order"),
    (NORM, OURS["blocks.0.norm2.weight"], "the numbers of norm2.weight of the same block"),
    (QUERIES, OURS[KEYS], "the numbers of attention.k.weight of the same block"),
    (QUERIES, OURS[KEYS].T, "the numbers of attention.k.weight of the same block, transposed"),
    (QUERIES, OURS[QUERIES].T, "it is transposed"),
    (QUERIES, heads([2, 0, 1]), "the right heads in the order 2, 0, 1"),
    (QUERIES, heads([1, 1, 1]), "every head has the numbers of head 1"),
    (OUT, OURS[OUT].reshape(6, 3, 2)[:, [1, 0, 2]].reshape(6, 6), "the right heads in the order 1, 0, 2"),
    (EXPERTS, OURS[EXPERTS][[2, 1, 0]], "the right experts in the order 2, 1, 0"),
    (EXPERTS, OURS[EXPERTS][[1, 1, 1]], "every expert has the numbers of expert 1"),
    (TABLE, turned(OURS[TABLE], 2), "the right rows rolled around: row 0 stands at 2"),
    (TABLE, np.concatenate([RANDOM.normal(size=(1, 5)), OURS[TABLE][:-1]]),
     "the right rows 1 later: 1 row is added in front"),
    (TABLE, np.concatenate([OURS[TABLE][2:], RANDOM.normal(size=(2, 5))]),
     "the right rows 2 earlier: 2 rows are missing in front"),
    (TABLE, OURS[TABLE][[0, 3, 2, 1, 4, 5, 6, 7]], "the right rows in another order, from row 1 to row 3"),
    (TABLE, OURS[TABLE][:, [0, 1, 4, 3, 2]], "the right columns in another order, from column 2 to column 4"),
    (TABLE, OURS[TABLE].T.reshape(8, 5),
     "the right numbers in another order, neither whole rows nor whole columns: reshaped?"),
    (TABLE, OURS[TABLE] * 2, "2 times the right numbers"), (TABLE, OURS[TABLE] + 1, "the right numbers plus 1"),
    (TABLE, OURS[TABLE] - 0.5, "the right numbers minus 0.5"),
    (TABLE, OURS[TABLE] * -3 + 1, "-3 times the right numbers plus 1"),
    (TABLE, np.exp(OURS[TABLE]), "the exponential of the right numbers"),
    (TABLE, np.abs(OURS[TABLE]), "the absolute value of the right numbers"),
    (TABLE, np.tanh(OURS[TABLE]), "the hyperbolic tangent of the right numbers"),
    (TABLE, np.square(OURS[TABLE]), "the square of the right numbers"),
    (TABLE, filled(slice(2, 4), 0.0), "2 of 8 rows hold 0 alone, from row 2 to row 3: not filled?"),
    (TABLE, filled(slice(5, 8), [1.0, 2.0, 3.0, 4.0, 5.0]), "3 of 8 rows differ, from row 5 to row 7"),
    (TABLE, OURS[TABLE] + RANDOM.normal(size=(8, 5)), "other numbers: not those of any right parameter"),
    (TABLE, OURS[TABLE] * (1 + 5e-4 * np.sign(OURS["positions.weight"])),
     "rounded: off by less than 1e-03 of the largest number"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "got", "sentence"), CASES, ids=[sentence for _, _, sentence in CASES])
def test_what_arrays_have_in_common_is_said(name, got, sentence):
    """Would break if rows were told as columns, a shift in one direction as one in the other, or a copy as chance."""
    assert said(**{name: got}) == f"{name}: {sentence}"


def test_numbers_without_any_relation_are_told_by_their_spread():
    drawn = np.random.default_rng(9).normal(5.0, 0.02, size=SHAPES[HEAD])
    assert said(**{HEAD: drawn}) == (
        f"{HEAD}: numbers without any relation to the right ones, 5 ± {drawn.std():.2g}: left as they were drawn?"
    )
    assert unrelated(drawn, OURS[HEAD])
    assert not unrelated(drawn[:2], OURS[HEAD][:2])


@pytest.mark.parametrize("bits", [4, 8])
def test_numbers_on_a_grid_are_told_by_their_bits(bits):
    step = np.abs(OURS[HEAD]).max() / (2 ** (bits - 1) - 1)
    assert said(**{HEAD: np.round(OURS[HEAD] / step) * step}) == (
        f"{HEAD}: rounded to {bits} bits, with a scale for each tensor"
    )


def test_parts_of_a_fused_projection_that_have_each_others_rows_are_told_together():
    names = [f"blocks.0.attention.{part}.weight" for part in "qkv"]
    whole = np.concatenate([OURS[name] for name in names])
    wrong = dict(zip(names, np.split(whole.reshape(3, 3, 2, 6).swapaxes(0, 1).reshape(18, 6), 3), strict=True))
    words = "rows of q, k and v stand in each other's places: split out of a fused one by another layout"
    assert said(**wrong) == f"{', '.join(names)}: {words}"


def test_arrays_are_alike_up_to_float32_and_any_number_stands_for_nan():
    want = np.array([1.0, np.nan, 3.0])
    assert alike(np.array([1.0, 7.0, 3.0 + 3e-6]), want)
    assert not alike(np.array([1.0, 7.0, 3.0 + 3e-5]), want)
    assert not alike(np.ones(3), np.full(3, np.nan))
    assert not alike(np.ones(2), np.ones(3))
