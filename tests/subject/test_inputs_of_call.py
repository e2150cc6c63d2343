"""What a call gets besides the contract's inputs fits them, however many axes they have."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.subject.inputs_of_call import further_inputs, positions_of


@pytest.mark.parametrize(
    ("shapes", "positions"),
    [
        ({"ids": (2, 7)}, 7), ({"ids": (7,)}, 7), ({"x": (2, 7, 3)}, 7), ({"q": (2, 4, 7, 3), "k": (2, 4, 9, 3)}, 7),
        ({"q": (7, 3)}, 7), ({"query": (2, 7, 3), "key": (2, 9, 3)}, 7), ({"src": (2, 9), "tgt": (2, 7)}, 7),
        ({"src": (2, 9)}, 9), ({"memory": (2, 9, 3)}, 1),
    ],
)  # fmt: skip
def test_a_call_is_about_the_positions_of_its_queries(shapes, positions):
    """Would break if keys, the source or the number of heads counted instead."""
    assert positions_of({name: np.zeros(shape) for name, shape in shapes.items()}) == positions


def further(inputs, sizes=None, *, causal="", required=False, several=False):
    """Return what is given besides these inputs, each by its shape; a mask as lists."""
    bound = SimpleNamespace(
        component=SimpleNamespace(several=several), causal=causal, mask=SimpleNamespace(required=required)
    )
    found = further_inputs(bound, sizes or {}, {name: np.zeros(shape) for name, shape in inputs.items()})
    return {name: array.tolist() if name == "mask" else array.shape for name, array in found.items()}


PLACES = {"positions": (2,), "position_ids": (1, 2)}


@pytest.mark.parametrize(
    ("inputs", "options", "wanted"),
    [
        ({"ids": (5, 2)}, {}, PLACES), ({"src": (5, 2)}, {"several": True, "required": True}, {}),
        ({"ids": (5, 2)}, {"causal": "mask"}, {**PLACES, "mask": [[True, False], [True, True]]}),
        ({"ids": (5, 2)}, {"causal": "argument"}, PLACES),
        ({"ids": (5, 2)}, {"causal": "mask", "sizes": {"causal": False}}, PLACES),
        ({"x": (5, 2, 3)}, {"required": True}, {**PLACES, "mask": [[True, True], [True, True]]}),
        ({"q": (2, 3), "k": (4, 3)}, {"required": True, "causal": "mask"}, {"mask": [[True] * 4] * 2}),
        ({"q": (2, 3), "k": (4, 3)}, {}, {}), ({"q": (2, 3), "k": (4, 3), "mask": (2, 4)}, {"required": True}, {}),
    ],
)  # fmt: skip
def test_positions_and_a_mask_are_given_where_the_call_has_or_needs_them(inputs, options, wanted):
    """Would break if a mask that must be given hid anything, or attention alone were told positions."""
    assert further(inputs, **options) == wanted
