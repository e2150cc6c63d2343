"""How many ids are the context of the next one, when a clause says what greedy text is."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.evidence.greedy_text import context_of


@pytest.mark.parametrize(
    ("construct", "limits", "cropped"),
    [
        (Arguments(named={"window": Expression("block_size")}), SizeLimits(), True),
        (Arguments(), SizeLimits({"block_size": Range(min=9, max=9)}), True),
        (Arguments(named={"width": Expression("d_model")}), SizeLimits(), False),
    ],
    ids=["an-argument", "a-declared-limit", "nothing-sets-it"],
)
def test_texts_are_cropped_where_something_sets_a_block_size(construct, limits, cropped):
    """Would break if a model whose positions have no end were asked to forget what it has read."""
    bound = SimpleNamespace(construct=construct, limits=limits)
    instance = SimpleNamespace(subject=SimpleNamespace(bound=bound), sizes={"block_size": 9})
    assert (context_of(cast("Any", instance)) == 9) is cropped
