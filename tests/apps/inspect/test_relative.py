"""What stands out is judged by the rest of the same model."""

from __future__ import annotations

import math

import pytest

from conformkit.conformance.apps.inspect.anomalies import conspicuous
from conformkit.conformance.apps.inspect.inspection import Heads, Inspection, Weight


def found(lacks=(), gradients=()):
    """Return what an inspection would find: heads whose entropy lacks so much, matrices with such gradients."""
    most = math.log(20)
    return Inspection(
        "theirs", "torch", "TinyTransformerLM", 0, "process", {}, (5, 20), [],
        [Heads(f"blocks.{n}", tuple(most * (1.0 - lack) for lack in own), most) for n, own in enumerate(lacks)],
        [Weight(f"w{n}", (4, 4), 4 * gradient) for n, gradient in enumerate(gradients)], differentiated=True, loss=None,
    )  # fmt: skip


@pytest.mark.parametrize(("lacks", "named"), [
    ([(3e-6, 2e-6), (9e-7, 4e-6)], []),
    ([(2e-2, 3e-2), (9e-7, 4e-2)], ["blocks.1"]),
    ([(0.0, 1e-8), (0.0, 0.0)], ["blocks.0", "blocks.1"]),
], ids=["a-small-initialization", "one-among-others", "all"])  # fmt: skip
def test_equal_weights_are_those_that_stand_out_or_are_exact(lacks, named):
    """Would break if heads that are nearly even in an untrained model, as in GPT-2, were called broken."""
    assert [one.place for one in conspicuous(found(lacks=lacks)) if "equal weights" in one.problem] == named


@pytest.mark.parametrize(("gradients", "named"), [
    ([1e-3, 2e-3, 3e-10, 1e-3], ["parameter w2"]), ([1e-3, 2e-3, 1e-5, 1e-3], []),
    ([1e-9, 2e-9, 1e-9], []),
], ids=["a-router", "small", "all-small"])  # fmt: skip
def test_a_gradient_that_is_rounding_next_to_the_others_is_named(gradients, named):
    """Would break if a router that learns nothing were overlooked since its gradient is not exactly 0."""
    assert [one.place for one in conspicuous(found(gradients=gradients))] == named
