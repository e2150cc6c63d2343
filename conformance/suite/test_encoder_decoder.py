"""Clauses of spec/encoder_decoder.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.checks import check, check_close, check_finite, check_shape, check_zero, under
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Instance, Subject, real_ids
from conformkit.spec.encoder_decoder import padding_mask, target_mask

Array = npt.NDArray[Any]
_SIZES = (
    "src_vocab_size",
    "tgt_vocab_size",
    "d_model",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "d_ff",
)


def build(transformer: Subject, width: int = 12, heads: int = 3, **options: Any) -> Instance:
    instance = transformer.build(d_model=width, num_heads=heads, **options)
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in _SIZES))
    return instance


def pairs(instance: Instance, draw: Draw, batch: int, source: int, target: int) -> tuple[Array, Array]:
    """Return ids src (B, S) and tgt (B, T) without padding."""
    sizes, most = instance.sizes, instance.sizes["max_len"]
    lengths = [min(instance.subject.tokens(n), most) for n in (source, target)]
    return (
        real_ids(draw, sizes["src_vocab_size"], sizes["pad_id"], batch, lengths[0]),
        real_ids(draw, sizes["tgt_vocab_size"], sizes["pad_id"], batch, lengths[1]),
    )


def masks(instance: Instance, src: Array, tgt: Array) -> tuple[Array, Array]:
    """Return the masks of a batch: the source's padding, the target's future and padding."""
    pad = instance.sizes["pad_id"]
    return padding_mask(src, pad), target_mask(tgt, pad)


def logits(instance: Instance, src: Array, tgt: Array) -> Array:
    return instance(src, tgt, *masks(instance, src, tgt))


def other_id(ids: Array, vocab_size: int, pad_id: int) -> Array:
    """Return for each id the next one that is no padding."""
    following = (ids + 1) % vocab_size
    return np.where(following == pad_id, (following + 1) % vocab_size, following)


@clause("S2S-LOGITS-SHAPE")
def test_each_target_position_has_a_row_of_logits(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer)
    for batch, source, target in ((2, 7, 4), (3, 2, 6), (1, 1, 1), (1, 5, 1)):
        src, tgt = pairs(instance, draw, batch, source, target)
        out = logits(instance, src, tgt)
        check_shape("output", out, (*tgt.shape, instance.sizes["tgt_vocab_size"]))
        check_finite("output", out)


@clause("S2S-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(transformer: Subject) -> None:
    for encoder, decoder in ((2, 3), (3, 1)):
        check_count(build(transformer, num_encoder_layers=encoder, num_decoder_layers=decoder))
    transformer.bound.require_weights()


@clause("S2S-CAUSAL")
def test_later_target_ids_leave_earlier_logits_unchanged(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 1, 4, 6)
    each = np.arange(tgt.shape[1])
    changed = np.repeat(tgt, len(each), axis=0)
    changed[each, each] = other_id(tgt[0], instance.sizes["tgt_vocab_size"], instance.sizes["pad_id"])
    before = logits(instance, src, tgt)
    by = np.abs(logits(instance, np.repeat(src, len(each), axis=0), changed) - before).max(axis=-1)
    tolerance = 10 * transformer.tolerance(10)
    check_zero("the change of the logits at t when the id changes at j > t", np.triu(by.T, 1), at_most=tolerance)
    check("the logits do not depend on the id at their own position", bool((np.diag(by) > 1e-6).all()))


@clause("S2S-SRC-PAD")
def test_padding_of_the_source_leaves_the_logits_unchanged(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 4, 5)
    padded = np.full((2, min(7, instance.sizes["max_len"])), instance.sizes["pad_id"])
    padded[:, : src.shape[1]] = src
    before = logits(instance, src, tgt)
    check_close(
        "the logits, padding appended to the source,", logits(instance, padded, tgt), before, transformer.tolerance(10)
    )


@clause("S2S-ENCODE-DECODE")
def test_the_halves_give_what_the_whole_gives(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 6, 4)
    src_mask, tgt_mask = masks(instance, src, tgt)
    memory = instance.call(src, src_mask, method="encode").out
    halves = instance.call(tgt, memory, tgt_mask, src_mask, method="decode").out
    check_close("decode(tgt, encode(src))", halves, logits(instance, src, tgt), transformer.tolerance(10))


@clause("S2S-ORACLE")
def test_the_logits_are_those_of_the_definition(transformer: Subject, draw: Draw) -> None:
    for width, heads, encoder, decoder in ((12, 3, 2, 3), (8, 1, 1, 1), (8, 4, 3, 1)):
        instance = build(transformer, width, heads, num_encoder_layers=encoder, num_decoder_layers=decoder)
        instance.randomize(draw)
        for batch, source, target in ((2, 7, 4), (3, 2, 6), (1, 1, 1)):
            src, tgt = pairs(instance, draw, batch, source, target)
            both = masks(instance, src, tgt)
            want = instance.expected(src, tgt, *both)
            check_close("logits", instance(src, tgt, *both), want, transformer.tolerance(10))
