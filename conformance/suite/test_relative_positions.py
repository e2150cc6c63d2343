"""Clauses of spec/relative_positions.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.bias_by_distance import MARGIN, check_bias
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.evidence.sublayers import check_same_everywhere, silent_attention
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

_OFFER = {True: "causal-on", False: "causal-off"}


def shown_weights(instance: Instance, table: Array, head: int, tokens: int) -> Array:
    """Return a head's weights (T, T) where queries are zero: sequence j of a batch has a value at position j alone."""
    width, depth = instance.sizes["d_model"], instance.sizes["head_width"]
    weights = zeros(instance, "")
    weights["relative.weight"] = table
    served = instance.sizes["num_heads"] // instance.sizes["kv_heads"]
    weights["v.weight"][head // served * depth, 0] = 1.0
    place = head * depth
    if "out.weight" in weights:
        weights["out.weight"][0, place], place = 1.0, 0
    x = np.zeros((tokens, tokens, width))
    x[np.arange(tokens), np.arange(tokens), 0] = 1.0
    return np.asarray(instance.write(weights)(x)[:, :, place]).T


def check_distances(multi_head: Subject, draw: Draw, tokens: int, least: int) -> None:
    """Check that weights differ as the table's entries do, for keys at least so far from their query."""
    for causal in each_of("causal", [causal for causal in (True, False) if multi_head.offers(_OFFER[causal])]):
        instance = multi_head.build(num_heads=2, causal=causal)
        table = draw.values(*zeros(instance, "")["relative.weight"].shape)

        def shown(table: Array, head: int, instance: Instance = instance) -> Array:
            return shown_weights(instance, table, head, tokens)

        check_bias(instance, table, shown, tokens, least, one_sided=causal)


@clause("REL-NEAR")
def test_small_distances_have_a_number_each(multi_head: Subject, draw: Draw) -> None:
    tokens = multi_head.tokens(multi_head.variant.relative_buckets // (4 if multi_head.offers("causal-off") else 2))
    if tokens < 2:
        raise NotApplicable.from_sizes("no sequence has two positions")
    check_distances(multi_head, draw, tokens, 0)


@clause("REL-FAR")
def test_large_distances_share_buckets(multi_head: Subject, draw: Draw) -> None:
    side = multi_head.variant.relative_buckets // 2
    tokens = multi_head.tokens(multi_head.variant.relative_distance + MARGIN)
    if tokens <= side // 2 + 1:
        raise NotApplicable.from_sizes("no sequence is long enough for buckets that are shared")
    check_distances(multi_head, draw, tokens, side // 2)


@clause("REL-ORACLE")
def test_the_output_is_the_definitions(multi_head: Subject, draw: Draw) -> None:
    for heads, causal in each_of("heads, causal", [(3, True), (4, True), (3, False)]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=causal).randomize(draw)
        x = drawn(instance, draw, 2, 30)
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())


@clause("REL-ALONE")
def test_with_silent_attention_an_id_gives_the_same_logits_everywhere(model: Subject, draw: Draw) -> None:
    check_same_everywhere(model, draw)


@clause("REL-SHARED")
def test_every_block_uses_its_table(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=3).randomize(draw)
    layers = instance.sizes["num_layers"]
    length = min(6, instance.sizes["block_size"])
    ids = draw.ids(instance.sizes["vocab_size"], 2, length)
    kept = {name: array.copy() for name, array in instance.weights.items()}
    for layer in each_of("layer", range(layers)):
        instance.write(kept)
        instance.write(silent_attention(instance, but=layer))
        before = instance(ids)
        name = "relative.weight" if model.variant.shares_table else f"blocks.{layer}.attention.relative.weight"
        instance.write({name: kept[name] + draw.values(*kept[name].shape)})
        change = float(np.abs(instance(ids) - before).max())
        check(f"other entries of {name} change nothing in block {layer}", change > model.tolerance(5))
