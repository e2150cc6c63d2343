"""What is taken of a call's result."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.driver.wire.arrays import OutputError
from conformkit.conformance.driver.worker.outputs import pick

ROWS = np.arange(3)


def is_array(value):
    return isinstance(value, np.ndarray)


@pytest.mark.parametrize(
    ("returned", "selector"),
    [
        ([{"tokens": ROWS}], "0.tokens"),
        (SimpleNamespace(best=(None, ROWS)), "best.1"),
        ({"a.b": ROWS, "a": None}, "a.b"),
    ],
    ids=["key-of-the-first", "second-of-an-attribute", "key-with-a-dot"],
)
def test_a_selector_continues_inside_the_selected_value(returned, selector):
    assert pick(returned, selector, is_array)["out"] is ROWS


def test_a_selector_without_a_match_is_reported():
    with pytest.raises(OutputError, match=r"output = '0\.ids' is not in it"):
        pick([{"tokens": ROWS}], "0.ids", is_array)
