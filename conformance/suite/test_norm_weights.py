"""Clauses of spec/norm_weights.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, check_equal, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import NormWindow
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause

LARGE = 10.0
"""A spread at which ε changes nothing that is compared."""


@clause("NORM-OFFSET")
def test_rows_are_multiplied_by_one_plus_gamma(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    rows = draw.values(5, window.width)
    factors = draw.uniform(window.width, low=0.5, high=3.0)
    plain, seen = window(rows).given, window(rows, gamma=factors).given
    under("γ = 0")
    size = float(np.sqrt((plain**2).mean()))
    check(f"rows have the root mean square {size:.3g}, expected about 1", 0.6 < size < 1.4)
    under("another γ")
    check_close("the norm of x", seen, factors * plain, block.tolerance(2), scale=10.0)


@clause("NORM-OFFSET-INIT")
def test_weights_start_at_0(block: Subject) -> None:
    instance = block.build()
    for name, value in instance.read().items():
        if name.startswith("norm"):
            check_equal(f"{name} at construction", value, np.zeros(value.shape))


@clause("NORM-NO-WEIGHTS")
def test_rows_have_mean_square_1(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    if window.width < 3:
        raise NotApplicable.from_sizes("rows of two features have no size of their own")
    spread = 1.0 if block.half or window.post else LARGE
    given = window(draw.values(5, window.width), spread=spread).given
    centered = given - given.mean(axis=-1, keepdims=True) if block.variant.norm == "layernorm" else given
    divisor = window.width - (block.variant.norm == "layernorm" and block.variant.norm_deviation == "sample")
    square = (centered**2).sum(axis=-1) / divisor
    check_close("the mean square of each row", square, np.ones_like(square), block.no_finer(1e-3))


@clause("NORM-EVERYWHERE")
def test_logits_are_those_of_norms_of_one_kind(model: Subject, draw: Draw) -> None:
    instance = model.build().randomize(draw)
    ids = draw.ids(instance.sizes["vocab_size"], 2, model.tokens(5))
    check_close("logits", instance(ids), instance.expected(ids), model.tolerance(5))
