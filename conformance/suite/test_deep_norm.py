"""Clauses of spec/deep_norm.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import silent_attention, silent_feed_forward
from conformkit.conformance.evidence.sublayers import check_definition
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.block import stream_factor
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.layers import normalize
from conformkit.spec.layers import under as below
from conformkit.spec.multi_head_attention import multi_head_attention
from conformkit.spec.variants import Variant

DEPTHS = (1, 2, 5)
"""Numbers of blocks at which α is 1.19, 1.41 and 1.78."""


@clause("DEEP-NORMED")
def test_output_rows_have_just_been_normalized(block: Subject, draw: Draw) -> None:
    instance, x = _built(block, draw, 3.0)
    y = _without_mean(instance(x), block.variant)
    square = (y**2).sum(axis=-1) / _divisor(block.variant, x.shape[-1])
    check_close("the mean square of each row", square, np.ones_like(square), block.no_finer(1e-3))


@clause("DEEP-ALPHA")
def test_the_stream_weighs_more_than_what_is_added(block: Subject, draw: Draw) -> None:
    instance, x = _built(block, draw, 1.0)
    if x.shape[-1] < 5:
        raise NotApplicable.from_sizes("in rows of few features the two parts of a sum cannot be told apart")
    own, alpha = instance.weights, stream_factor(block.variant, 1)
    stream = normalize({**own, **_plain(instance)}, "norm1", x, block.variant)
    added = feed_forward(below(own, "feed_forward"), stream, variant=block.variant)
    second = _ratio(instance.write(silent_attention(instance))(x), stream, added, block.variant)
    instance.write(own)
    instance.write(silent_feed_forward(instance))
    heads = {name: instance.sizes[name] for name in ("num_heads", "kv_heads")}
    weights = below(instance.weights, "attention")
    mixed = multi_head_attention(weights, x, **heads, causal=instance.sizes["causal"], variant=block.variant)
    # one comparison: α that one sum lacks is another mistake than α that both lack
    got = np.stack([_ratio(instance(x), x, mixed, block.variant), second])
    check_close("α in [the first sum, the second]", got, np.full_like(got, alpha), block.no_finer(1e-3))


@clause("DEEP-ORACLE")
def test_the_output_is_that_of_the_definition(block: Subject, draw: Draw) -> None:
    check_definition(block, draw)


@clause("DEEP-DEPTH")
def test_logits_at_several_depths(model: Subject, draw: Draw) -> None:
    for depth in each_of("depth", DEPTHS):
        instance = model.build(num_layers=depth).randomize(draw)
        ids = draw.ids(instance.sizes["vocab_size"], 2, model.tokens(5))
        check_close("logits", instance(ids), instance.expected(ids), model.tolerance(5))


def _built(block: Subject, draw: Draw, scale: float) -> tuple[Instance, Array]:
    """Return a block whose norms neither scale nor shift, and an input."""
    instance = block.build(d_model=12, num_heads=3, d_ff=20).randomize(draw)
    instance.write(_plain(instance))
    x = draw.values(2, block.tokens(5), instance.sizes["d_model"], scale=scale)
    return instance, instance.held(x)


def _plain(instance: Instance) -> dict[str, Array]:
    gamma = instance.subject.variant.plain_gamma
    norms = {name: p.shape for name, p in instance.canonical.items() if name.startswith("norm")}
    return {name: np.full(shape, gamma if name.endswith(".weight") else 0.0) for name, shape in norms.items()}


def _ratio(rows: Array, stream: Array, added: Array, variant: Variant) -> Array:
    """Return a / b for each row that is the norm of a · stream + b · added."""
    rows, stream, added = (_without_mean(each, variant).reshape(-1, rows.shape[-1]) for each in (rows, stream, added))
    parts = [
        np.linalg.lstsq(np.stack([one, two], axis=1), row, rcond=None)[0]
        for row, one, two in zip(rows, stream, added, strict=True)
    ]
    return np.asarray([a / b for a, b in parts])


def _without_mean(rows: Array, variant: Variant) -> Array:
    return rows - rows.mean(axis=-1, keepdims=True) if variant.norm == "layernorm" else rows


def _divisor(variant: Variant, width: int) -> int:
    return width - (variant.norm == "layernorm" and variant.norm_deviation == "sample")
