"""Clauses of spec/seq2seq_relative.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.bias_by_distance import MARGIN, check_bias
from conformkit.conformance.evidence.dependence import causal
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.sublayers import build, silent
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.example_inputs import real_ids
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

_SELF = {"encoder": "attention", "decoder": "self_attention"}
"""By stack, the attention of its layers that has a bias."""


def shown_weights(instance: Instance, attention: str, table: Array, head: int, tokens: int) -> Array:
    """Return a head's weights (T, T) up to one factor, where queries are zero and other sublayers silent."""
    width, depth = instance.sizes["d_model"], instance.sizes["head_width"]
    weights = {**zeros(instance, f"{attention}."), **silent(instance, "feed_forward")}
    if attention == "self_attention":
        weights |= silent(instance, "cross_attention")
    weights |= {name: np.zeros(p.shape) for name, p in instance.canonical.items() if name.endswith(".bias")}
    plain = instance.subject.variant.plain_gamma
    weights |= {f"norm{n}.weight": np.full(width, plain) for n in (1, 2, 3) if f"norm{n}.weight" in instance.canonical}
    weights[f"{attention}.relative.weight"] = table
    served = instance.sizes["num_heads"] // instance.sizes["kv_heads"]
    weights[f"{attention}.v.weight"][head // served * depth, 0] = 1.0
    place = head * depth
    if instance.subject.variant.output_projection:
        weights[f"{attention}.out.weight"][0, place], place = 1.0, 0
    x = np.zeros((tokens, tokens, width))
    x[np.arange(tokens), np.arange(tokens), 0] = 1.0
    further = (np.zeros((tokens, instance.subject.tokens(1), width)), causal(x)) if attention != "attention" else ()
    return np.asarray((instance.write(weights)(x, *further) - x)[:, :, place]).T


def check_layer(layer: Subject, draw: Draw, attention: str, tokens: int, least: int) -> None:
    """Check that weights of a layer's own attention differ as the table's entries do, from so large a distance on."""
    if tokens < least + 2:
        raise NotApplicable.from_sizes("no sequence is long enough")
    instance = build(layer, width=12, heads=2).randomize(draw)

    def shown(table: Array, head: int) -> Array:
        return shown_weights(instance, attention, table, head, tokens)

    table = draw.values(*instance.canonical[f"{attention}.relative.weight"].shape)
    check_bias(instance, table, shown, tokens, least, one_sided=attention != "attention")


@clause("SREL-BOTH-NEAR")
def test_the_encoder_has_a_number_for_each_small_distance_on_both_sides(encoder_layer: Subject, draw: Draw) -> None:
    check_layer(encoder_layer, draw, "attention", encoder_layer.tokens(encoder_layer.variant.relative_buckets // 4), 0)


@clause("SREL-BOTH-FAR")
def test_the_encoders_large_distances_share_buckets(encoder_layer: Subject, draw: Draw) -> None:
    tokens = encoder_layer.tokens(encoder_layer.variant.relative_distance + MARGIN)
    check_layer(encoder_layer, draw, "attention", tokens, encoder_layer.variant.relative_buckets // 4)


@clause("SREL-EARLIER-NEAR")
def test_the_decoder_has_a_number_for_each_small_distance(decoder_layer: Subject, draw: Draw) -> None:
    tokens = decoder_layer.tokens(decoder_layer.variant.relative_buckets // 2)
    check_layer(decoder_layer, draw, "self_attention", tokens, 0)


@clause("SREL-EARLIER-FAR")
def test_the_decoders_large_distances_share_buckets(decoder_layer: Subject, draw: Draw) -> None:
    tokens = decoder_layer.tokens(decoder_layer.variant.relative_distance + MARGIN)
    check_layer(decoder_layer, draw, "self_attention", tokens, decoder_layer.variant.relative_buckets // 2)


def _layers(instance: Instance) -> list[tuple[str, str]]:
    """Return each layer's name and that of its self-attention, of both stacks."""
    return [
        (f"{side}.layers.{layer}", name)
        for side, name in _SELF.items()
        for layer in range(instance.sizes[f"num_{side}_layers"])
    ]


def _ids(instance: Instance, draw: Draw) -> tuple[Array, Array]:
    """Return src and tgt, two rows each, without padding."""
    sizes, length = instance.sizes, min(6, instance.sizes["max_len"])
    length = instance.subject.tokens(length)
    src = real_ids(draw, sizes["src_vocab_size"], sizes["pad_id"], 2, length)
    return src, real_ids(draw, sizes["tgt_vocab_size"], sizes["pad_id"], 2, length)


@clause("SREL-ALONE")
def test_with_silent_self_attention_no_order_shows(transformer: Subject, draw: Draw) -> None:
    instance = transformer.build().randomize(draw)
    instance.write(silent(instance, *(f"{layer}.{name}" for layer, name in _layers(instance))))
    src, tgt = _ids(instance, draw)
    tgt = np.repeat(tgt[:, :1], tgt.shape[1], axis=1)
    logits = instance(src, tgt)
    want = np.broadcast_to(logits[:, :1], logits.shape)
    check_close("logits of one target id at every position", logits, want, transformer.tolerance(8))
    order = draw.permutation(src.shape[1])
    check_close("logits, the source permuted,", instance(src[:, order], tgt), logits, transformer.tolerance(8))


@clause("SREL-SHARED")
def test_every_layer_uses_its_stacks_table(transformer: Subject, draw: Draw) -> None:
    instance = transformer.build(num_encoder_layers=3, num_decoder_layers=3).randomize(draw)
    src, tgt = _ids(instance, draw)
    kept = {name: array.copy() for name, array in instance.weights.items()}
    layers = _layers(instance)
    for layer, attention in each_of("layer, attention", layers):
        instance.write(kept)
        instance.write(silent(instance, *(f"{other}.{name}" for other, name in layers if other != layer)))
        before = instance(src, tgt)
        own = layer.split(".")[0] if transformer.variant.shares_table else f"{layer}.{attention}"
        table = f"{own}.relative.weight"
        instance.write({table: kept[table] + draw.values(*kept[table].shape)})
        change = float(np.abs(instance(src, tgt) - before).max())
        check(f"other entries of {table} change nothing in {layer}", change > transformer.tolerance(8))
