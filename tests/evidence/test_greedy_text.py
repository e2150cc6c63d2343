"""How many ids are the context of the next one, when a clause says what greedy text is."""

from collections.abc import Mapping
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.greedy_text import context_of, generated


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


class Writer:
    """A model that raises where a text is longer than its block, and may write into an array as it goes."""

    sizes: Mapping[str, int] = MappingProxyType({"block_size": 5})

    def __init__(self, *, keeps, call):
        bound = SimpleNamespace(call=Arguments(named=call))
        self.subject = SimpleNamespace(offers=lambda what: what == "greedy", bound=bound)
        self.kept, self.keeps = {"keys": np.zeros((2, 5, 3)), "table": np.zeros((5, 3))}, keeps

    def read_raw(self):
        return {name: array.copy() for name, array in self.kept.items()}

    def generate(self, prompts, count, **_):
        if self.keeps:
            self.kept["keys"][:1, :1] = prompts[0, 0]
        if prompts.shape[1] + count > 5:
            raise ImplementationFailure("exception", "RuntimeError", "The size of tensor a (5) must match 8", "", "")
        return SimpleNamespace(out=np.zeros((len(prompts), prompts.shape[1] + count), np.int64))


@pytest.mark.parametrize(
    ("keeps", "call", "kind"),
    [(True, {}, NotApplicable), (False, {"start_pos": 0}, NotApplicable), (False, {}, ImplementationFailure)],
    ids=["kept", "kept-out-of-sight", "not"],
)
def test_a_cache_in_arrays_of_the_block_has_nothing_to_crop(keeps, call, kind):
    """Would break if llama's cache were red, or a forgotten crop were taken for such a cache."""
    model = cast("Any", Writer(keeps=keeps, call=call))
    for _ in range(2):  # the second time, it holds the text that was tried
        with pytest.raises(kind):
            generated(model, np.zeros((2, 8), np.int64), 2)
