"""A cache that keeps the graph of a call is known before gradients are judged."""

from types import SimpleNamespace

import numpy as np
import pytest

from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.probing.kept_graphs import keeps_graphs


class _Model:
    """An instance whose second backward pass fails with a message."""

    def __init__(self, argument, message):
        bound = SimpleNamespace(call=SimpleNamespace(named={argument: None}))
        self.subject = SimpleNamespace(bound=bound, construct=lambda *_, **__: self)
        self.sizes, self.dtype, self.message, self.passes = {}, "float64", message, 0

    def example_inputs(self, _, **__):
        return (np.zeros((1, 3), int),)

    def __call__(self, ids):
        return np.zeros((*ids.shape, 5))

    def vjp(self, *_, **__):
        self.passes += 1
        if self.passes > 1 and self.message:
            raise ImplementationFailure("exception", "RuntimeError", self.message)


SECOND = "Trying to backward through the graph a second time (or directly access saved tensors)"


@pytest.mark.parametrize(
    ("argument", "message", "keeps"),
    [
        ("start_pos", SECOND, True),
        ("tokens", SECOND, False),
        ("start_pos", "", False),
        ("start_pos", "shapes differ", False),
    ],
    ids=["cache", "no-place", "detached", "another-error"],
)
def test_gradients_are_not_judged_where_a_cache_keeps_its_graph(argument, message, keeps):
    """Catches code that only generates, red for gradients, and a model that keeps its logits, excused from them."""
    assert keeps_graphs(_Model(argument, message)) is keeps
