"""The parts of scripts that reproduce a failure: arrays as text, where numbers come from, what a call returns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from conformkit.conformance.apps.repro.literals import array_text
from conformkit.conformance.apps.repro.matching import find, find_entry
from conformkit.conformance.apps.repro.selection import pick, returned
from conformkit.conformance.driver.worker.outputs import describe
from conformkit.conformance.driver.worker.outputs import pick as picked_by_driver

SHAPES = arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)
DTYPES = st.sampled_from([np.float64, np.float32, np.int64, np.bool_])
ARRAYS = DTYPES.flatmap(lambda dtype: arrays.arrays(dtype, SHAPES))


@given(ARRAYS)
def test_an_array_survives_being_written(array: Any) -> None:
    again = eval(array_text(array, torch=False), {"np": np})
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(again, array)
    tensor = eval(array_text(array, torch=True), {"torch": torch}).numpy()
    assert (tensor.dtype, tensor.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(tensor, array)


def test_numbers_of_float32_are_written_short() -> None:
    text = array_text(np.array([[0.1, 1 / 3]], np.float32).astype(np.float64), torch=True)
    assert text == "torch.tensor([[0.1, 0.33333334]], dtype=torch.float32).double()"


@pytest.mark.parametrize(
    "expression",
    [
        "a", "a[1]", "a[:, 0]", "a[[0, 2]]", "a[:, :3]", "a[:, [3, 1, 0, 2]]", "a[1:2, 2]", "a.swapaxes(0, 1)",
        "a[..., 1:3]", "a.sum(-1)", "a[-1, -1, -1:]", "np.abs(a).max(-1)", "a[:, 1:2]", "a[1, :, [0, 3]]",
    ],
)  # fmt: skip
def test_a_part_of_an_output_is_recognised(expression: str) -> None:
    a = np.random.default_rng(0).normal(size=(3, 4, 5))
    wanted = eval(expression, {"a": a, "np": np})
    found = find(wanted, [(0, "out", a), (1, "out", 2 * a)])
    if found is None:
        assert expression == "a[1, :, [0, 3]]"  # its axes change places
        return
    assert found.call == 0
    np.testing.assert_array_equal(eval(found.expression.format("a"), {"a": a, "np": np}), wanted)


def test_numbers_from_elsewhere_are_not_recognised() -> None:
    a = np.random.default_rng(0).normal(size=(3, 4))
    assert find(a + 1e-9, [(0, "out", a)]) is None
    assert find(np.zeros((3, 4)), [(0, "out", a)]) is None
    assert find_entry(np.float64(0.5), [(0, "out", a)]) is None
    assert find_entry(a[2, 1], [(0, "out", np.stack([a, a]))]) is None  # there twice
    entry = find_entry(a[2, 1], [(0, "out", a)])
    assert entry is not None
    assert entry.expression == "{}[2, 1]"


def test_ids_are_recognised_by_their_columns() -> None:
    ids = np.array([[1, 2, 2, 3], [1, 2, 4, 4]])
    found = find(ids[:, 2:], [(0, "out", ids)])
    assert found is not None
    assert found.expression == "{}[:, 2:]"
    assert find(np.array([[2, 2], [2, 5]]), [(0, "out", ids)]) is None


@pytest.mark.parametrize(
    ("value", "selector"),
    [
        (np.ones(2), None), ((None, np.ones(2)), None), ([(np.ones(2),)], None),
        ({"a": None, "logits": np.ones(2)}, None),
        ({"a": np.zeros(3), "logits": np.ones(2)}, ""), (SimpleNamespace(a=np.zeros(3), logits=np.ones(2)), ""),
        (np.ones(2), ""), ((None, np.ones(2)), ""), ([1, 2, 3], ""), ([[1.0, 2.0], [3.0, 4.0]], ""),
        ((np.ones(2), np.zeros(3)), 1), ({"a": np.ones(2), "b": np.zeros(3)}, "b"), ({"a": np.ones(2)}, 0),
        (SimpleNamespace(loss=None, logits=np.ones(2)), None), (SimpleNamespace(mixed=np.ones(2)), "mixed"),
        ([1, 2, 3], None), ([[1.0, 2.0], [3.0, 4.0]], None), ({"a (b": np.ones(2)}, "a (b"),
        ({"{0}": np.ones(2), "{x} \"'": np.zeros(3)}, "{x} \"'"), (([1], {"{0!r}": np.ones(2)}), None),
        (SimpleNamespace(**{'{0}"""': np.ones(2)}), '{0}"""'), (SimpleNamespace(**{"a]; (b": np.ones(2)}), "a]; (b"),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_a_script_picks_what_the_driver_picks(value: Any, selector: int | str | None) -> None:
    text, _ = pick(returned(describe(value, _is_array)), selector)
    want = picked_by_driver(value, selector, _is_array)["out"]
    np.testing.assert_array_equal(eval(text.format("value"), {"value": value}), want)


def _is_array(value: object) -> bool:
    return isinstance(value, np.ndarray)
