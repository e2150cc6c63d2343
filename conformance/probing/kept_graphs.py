"""A cache of the model's own that keeps the graph of one call for the next, as code does that only generates."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Instance

__all__ = ["GOES_ON", "keeps_graphs"]

GOES_ON = frozenset({"start_pos", "past_len"})
"""Names of the place in its own cache at which a model goes on."""
_SECOND = "backward through the graph a second time"
"""What torch says of gradients that reach into the call before."""


def keeps_graphs(instance: Instance) -> bool:
    """Whether its call takes the place at which to go on, and gradients of a second call reach into the first."""
    if GOES_ON.isdisjoint(instance.subject.bound.call.named):
        return False
    fresh = instance.subject.construct(instance.sizes, dtype=instance.dtype)
    inputs = fresh.example_inputs(Draw(0, "kept graphs"), further=0)
    try:
        cotangent = np.ones_like(fresh(*inputs))
        for _ in range(2):
            fresh.vjp(*inputs, cotangent=cotangent, wrt=())
    except ImplementationFailure as failure:
        return _SECOND in failure.message
    return False
