"""The record as the harness reads it: numbers that fit, origins, what was made of what."""

import numpy as np
import pytest

from conformkit.conformance.discovery.tracing.explaining import explained
from conformkit.conformance.discovery.tracing.record import CallRecord, RecordError


def record(*values, place=None, numbers=None):
    """Make a record of (op, given, array, name)."""
    listed = [
        {"op": op, "given": given, "shape": list(array.shape), "part": "", "name": name, "scalars": []}
        for op, given, array, name in values
    ]
    flat = np.concatenate([array.ravel() for _, _, array, _ in values]) if numbers is None else numbers
    place = len(values) - 1 if place is None else place
    return CallRecord.of({"values": listed, "place": place, "cut": False}, {"numbers": flat})


X, W = np.arange(6.0).reshape(2, 3), np.ones((3, 3))
MOVED = (("input", [], X, "x"), ("t", [0], X.T, ""), ("slice", [1], X.T[:1], ""), ("mul", [2], 2 * X.T[:1], ""))


@pytest.mark.parametrize("numbers", [np.zeros(3), np.zeros(30), np.zeros((14, 1))], ids=["few", "many", "axes"])
def test_numbers_that_are_not_those_of_the_values_are_refused(numbers):
    """Catches reading beyond the numbers that were sent, or numbers of another value."""
    with pytest.raises(RecordError):
        record(*MOVED, numbers=numbers)


def test_a_place_outside_the_record_is_refused():
    with pytest.raises(RecordError):
        record(*MOVED, place=4)


def test_an_origin_is_what_was_only_moved_since():
    """Catches taking some numbers of a value for all of them, or a product for a move."""
    found = record(*MOVED)
    assert found.origin(2) == 0
    assert found.origin(2, whole=True) == 2
    assert found.origin(3) == 3


def test_what_does_not_depend_on_the_input_is_not_lively():
    found = record(("parameter", [], W, "w"), ("input", [], X, "x"), ("t", [0], W.T, ""), ("mm", [1, 2], X @ W, ""))
    assert found.lively == {1, 3}
    assert found.parameter(2) is not None
    assert found.reaches(3, 0)
    assert not found.reaches(2, 1)


def test_the_same_numbers_computed_twice_are_one_value():
    """Catches `ln(x) + mlp(ln(x))` as two unrelated branches."""
    y = X + 1.0
    found = record(("input", [], X, "x"), ("add", [0], y, ""), ("add", [0], y, ""), ("mul", [2], 2 * y, ""))
    assert found.origin(2, whole=True) == 1
    assert found.reaches(3, 1)


SHAPES = [(2, 7, 6), (14, 6), (6,), (2, 7, 7), (4, 7, 3), (), (0, 3), (6, 6), (2, 7), (1, 14, 6)]


@pytest.mark.parametrize("component", ["TinyTransformerLM", "TransformerBlock", "MultiHeadAttention", "FeedForward"])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_a_record_says_reading_it_ends_without_an_error(component, seed):
    """Catches a crash of the harness by a worker that lies about operations, shapes and numbers."""
    rng = np.random.default_rng(seed)
    ops = [
        "input",
        "parameter",
        "add",
        "mm",
        "addmm",
        "bmm",
        "mul",
        "embedding",
        "gelu",
        "native_layer_norm",
        "cat",
        "view",
        "t",
        "_softmax",
        "written",
    ]
    ops.append("_scaled_dot_product_attention_math")
    ids = rng.integers(0, 5, (2, 7)).astype(float)
    values = [("input", [], ids, "ids"), ("parameter", [], rng.normal(size=(9, 6)), "w")]
    for place in range(2, 40):
        shape = SHAPES[rng.integers(len(SHAPES))]
        array = rng.choice([0.0, 1.0, np.nan, np.inf, 3.5], size=shape) if seed % 3 == 0 else rng.normal(size=shape)
        given = [int(n) for n in rng.integers(0, place, rng.integers(0, 4))]
        values.append((str(rng.choice(ops)), given, np.asarray(array, float), "w" * int(rng.integers(2))))
    sizes = {"d_model": 6, "num_layers": 2, "num_heads": 2, "causal": True}
    given = values[0][2].astype(int) if component == "TinyTransformerLM" else rng.normal(size=(2, 7, 6))
    with np.errstate(all="ignore"):
        for place in range(2, 40):
            explained(component, record(*values, place=place), sizes, given)
