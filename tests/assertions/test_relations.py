"""Numbers that are wrong say how: a factor, an order, an input that is missing; and say nothing where nothing fits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformkit.conformance.assertions.relations import relation
from conformkit.conformance.findings.relation import How

RANDOM = np.random.default_rng(0)
WANT, X = RANDOM.normal(size=(2, 5, 12)), RANDOM.normal(size=(2, 5, 12))
SHARES = np.exp(WANT) / np.exp(WANT).sum(-1, keepdims=True)
SIZES = {"d_model": 12, "num_heads": 3}


def said(got, want=WANT, label="output"):
    found = relation(label, np.asarray(got), np.asarray(want), 1e-9, inputs={"x": X}, sizes=SIZES)
    return str(found) if found is not None else ""


def changed(index, values):
    got = WANT.copy()
    got[index] = values
    return got


RELATIONS = {
    "half of it": (WANT / 2, "every entry is 0.5 times what it should be"),
    "mean for sum": (WANT / 3, "every entry is 1/3 (1/num_heads) times what it should be"),
    "scaled": (WANT * 12**0.5, "every entry is 3.4641 (√d_model) times what it should be"),
    "sign": (-WANT, "every entry has the opposite sign"),
    "offset": (WANT - 3, "every entry is 3 too small"),
    "factor and offset": (2 * WANT + 1, "every entry is 2 times what it should be, plus 1"),
    "square": (WANT**2, "it is the square of what it should be"),
    "softmax over features": (SHARES, "it is the softmax of what it should be, over the features"),
    "running sum": (WANT.cumsum(1), "it is the running sum of what it should be, over the positions"),
    "reversed": (WANT[:, ::-1], "positions are in reverse order"),
    "shifted": (np.roll(WANT, 1, 1), "positions: each has what belongs 1 before it"),
    "first for all": (np.repeat(WANT[:, :1], 5, 1), "positions: all of them have what belongs to 0 alone"),
    "other batch rows": (WANT[::-1], "rows of the batch are in reverse order"),
    "memory": (
        WANT.transpose(0, 2, 1).reshape(WANT.shape),
        "the right numbers, read in another order of the axes: a reshape or view without a transpose",
    ),
    "input itself": (X.copy(), "it is x itself"),
    "no residual": (WANT - X, "it is what it should be without x"),
    "residual twice": (WANT + X, "it is what it should be, and x is added once more"),
    "factor by position": (
        WANT / np.arange(1, 6)[:, None],
        "positions: each has a factor of its own, 0.5, 0.3333, 0.25, 0.2, in positions from 1 on; the rest is right",
    ),
    "a vector added": (
        WANT + np.arange(1.0, 13), "features: the same numbers are added everywhere, 1, 2, 3, 4, 5, 6, …"
    ),
    "zero in part": (changed(np.s_[:, 3:], 0.0), "every entry is 0, in positions from 3 on; the rest is right"),
    "one row": (changed(np.s_[:, 4], X[:, 4] ** 3), "wrong only in positions 4 (the last)"),
}  # fmt: skip


@pytest.mark.parametrize("name", RELATIONS)
def test_what_the_numbers_show_is_said(name):
    got, sentence = RELATIONS[name]
    assert said(got) == sentence


def test_a_vector_of_weights_is_named():
    shift = RANDOM.normal(size=12)
    for times, sentence in ((1, "and norm.bias is added once more"), (-2, "with norm.bias subtracted, not added")):
        found = relation("output", WANT + times * shift, WANT, 1e-9, inputs={"norm.bias": shift})
        assert str(found).endswith(sentence)


def test_of_ones_only_the_sign_is_said():
    want = np.tile([0.0, 1.0], (3, 6))
    assert said(np.where(want == 1, -1.0, 0.0), want) == (
        "every entry has the opposite sign, in columns with odd numbers; the rest is right"
    )


FUNCTIONS = {
    "the square of": np.square, "the absolute value of": np.abs, "the exponential of": np.exp,
    "the reciprocal of": np.reciprocal, "the tanh of": np.tanh, "the ReLU of": lambda x: np.maximum(x, 0),
    "the sigmoid of": lambda x: 1 / (1 + np.exp(-x)), "a rounding of": np.rint,
}  # fmt: skip
OVER_FEATURES = {
    "the softmax of": SHARES, "the log-softmax of": np.log(SHARES), "the running sum of": WANT.cumsum(-1),
    "the deviation from the mean of": WANT - WANT.mean(-1, keepdims=True),
    "the share in the sum of": WANT / WANT.sum(-1, keepdims=True),
    "the vector of length 1 along": WANT / np.sqrt((WANT**2).sum(-1, keepdims=True)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_called_by_its_name(name):
    """Would break if two functions had changed names, or one were not tried."""
    assert said(FUNCTIONS[name](WANT)) == f"it is {name} what it should be"


@pytest.mark.parametrize("name", OVER_FEATURES)
def test_each_function_over_an_axis_is_called_by_its_name_both_ways(name):
    """Would break if a step that is left out, the softmax of logits, were told as one too many."""
    made = OVER_FEATURES[name]
    assert said(made) == f"it is {name} what it should be, over the features"
    assert said(WANT, made) == f"{name} it is what it should be, over the features"


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (1 / math.sqrt(1 - 0.999), "31.6228 (1/√(1 - 0.999))"), (math.sqrt(1 - 0.999), "0.0316228 (√(1 - 0.999))"),
        (0.1 / math.sqrt(1 - 0.999), "3.16228 ((1 - 0.9)/√(1 - 0.999))"), (7**0.5, "2.64575 (√7)"),
        (8**-0.5, "0.353553 (1/√8)"), (64.0, "64"), (256.0, "256"), (1 / 12, "1/12"),
    ],
)  # fmt: skip
def test_a_factor_of_one_number_without_sizes_is_named(factor, words):
    """Would break if a step of Adam without its corrections were called by the root of another number."""
    found = relation("step", np.asarray(factor * 3.0), np.asarray(3.0), 1e-9)
    assert str(found) == f"it is {words} times what it should be"


@pytest.mark.parametrize("factor", [65.0, 11**0.5, 1 / 65, -0.3])
def test_a_factor_that_is_no_simple_one_is_not_said(factor):
    assert relation("step", np.asarray(factor * 3.0), np.asarray(3.0), 1e-9) is None


@pytest.mark.parametrize(
    ("got", "sentence"),
    [
        (np.roll(WANT, -1, 1), "positions: each has what belongs 1 after it"),
        (WANT[:, [1, 0, 2, 4, 3]], "positions are in another order: 0, 1, 2, … have what belongs to 1, 0, 2, 4, 3"),
        (changed(np.s_[:, 3:], WANT[:, 3:] / 2),
         "every entry is 0.5 times what it should be, in positions from 3 on; the rest is right"),
        (2 * WANT - 3, "every entry is 2 times what it should be, minus 3"),
        (WANT + 2, "every entry is 2 too large"),
        (WANT - 0.5 * X, "it is what it should be plus −0.5 × x"),
        (np.zeros_like(WANT), "every entry is 0"),
    ],
)  # fmt: skip
def test_the_direction_and_the_sign_of_what_differs_are_said(got, sentence):
    """Would break if a shift forward were told as one back, or what is subtracted as added."""
    assert said(got) == sentence


@pytest.mark.parametrize(
    ("got", "want"), [([1.0, 2.0, 4.0], [2.0, 4.0, 8.0]), ([1.0, 2.0, 4.0, 5.0], [2.0, 4.0, 8.0, 10.0])]
)
def test_three_numbers_are_enough_for_a_factor(got, want):
    """Would break if a short row were left without its relation, or two numbers were enough for one."""
    assert said(got, np.asarray(want)) == "every entry is 0.5 times what it should be"
    assert said(got[:2], np.asarray(want[:2])) == ""


def test_axes_that_change_places_are_named():
    want = RANDOM.normal(size=(1, 4, 4))
    assert said(want.swapaxes(1, 2), want) == "positions and features have changed places"


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (RANDOM.normal(size=(2, 5, 12)), WANT), (WANT[:, :4], WANT), (np.full(9, 2.0), np.full(9, 1.0)),
        (WANT * np.nan, WANT), (WANT * 0.5 + 1e-4 * X, WANT), (WANT + 1e-7 * X, WANT),
    ],
    ids=["unrelated", "another-shape", "all-alike", "nan", "nearly-half", "rounding"],
)  # fmt: skip
def test_nothing_is_said_where_nothing_fits(got, want):
    assert said(got, want) == ""


def test_one_number_is_related_only_where_the_ratio_is_simple():
    assert said(1 / 1024, 1.0) == "it is 1/1024 times what it should be"
    assert said(12**0.5 * 0.7, 0.7) == "it is 3.4641 (√d_model) times what it should be"
    assert said(0.71234, 1.0) == ""


def test_heads_of_keys_are_named_only_where_there_are_fewer_of_them():
    """Would break if each factor of heads were told as one of two, where both are the same number."""
    for heads, names in ((3, "num_heads"), (6, "kv_heads")):
        found = relation("loss", np.asarray(float(heads)), np.asarray(1.0), sizes={"num_heads": 3, "kv_heads": heads})
        assert str(found) == f"it is {heads} ({names}) times what it should be"


@pytest.mark.parametrize(("got", "want"), [(0.0, 2.0), (2.0, 0.0), (2.0, 2.0)])
def test_of_zero_and_of_the_right_number_nothing_is_said(got, want):
    assert relation("loss", np.asarray(got), np.asarray(want)) is None


def test_a_factor_that_could_be_any_number_gives_no_advice():
    """Would break if another ε, which scales a row of small numbers by 2.395, were called a mean in place of a sum."""
    odd, half = (relation("output", WANT * factor, WANT, 1e-9) for factor in (2.395, 0.5))
    assert odd is not None
    assert half is not None
    assert (bool(odd.advice), bool(half.advice)) == (False, True)


def test_whole_numbers_may_be_one_too_large():
    found = relation("ids", np.arange(2, 10), np.arange(1, 9))
    assert found is not None
    assert found.how is How.OFFSET


@pytest.mark.parametrize(
    ("sizes", "factor", "known"),
    [
        ({"d_v": 2, "d_k": 4, "tokens": 2}, 0.5, "1/√d_k"),
        ({"head_width": 9, "d_head": 9, "d_ff": 3}, 3.0, "√d_head"),
        ({"d_model": 16, "max_len": 4, "num_heads": 4}, 4.0, "√d_model"),
        ({"d_v": 2, "max_len": 3}, 0.5, ""),
        ({"d_v": 7, "max_len": 3}, 7.0, "d_v"),
        ({"batch": 2, "d_model": 12}, 2**-0.5, "1/√2"),
        ({"batch": 3, "d_k": 2, "d_model": 12}, 2**0.5, "√d_k"),
        ({"tokens": 7, "d_model": 12}, 7**-0.5, "1/√tokens"),
    ],
    ids=[
        "scale-of-scores",
        "one-name",
        "embedding",
        "small-and-unusual",
        "unusual-alone",
        "root-of-two",
        "root-of-a-width",
        "root-of-a-length",
    ],
)
def test_of_several_sizes_a_factor_is_the_most_usual_one(sizes: dict[str, int], factor: float, known: str) -> None:
    """Would break if 1/d_v were said where 1/√d_k is meant, since both are 0.5 at these sizes."""
    want = np.random.default_rng(5).normal(size=(3, 4))
    found = relation("output", factor * want, want, 1e-9, sizes=sizes)
    assert found is not None
    assert found.names == ((known,) if known else ())
