"""Clauses of spec/encoder_decoder.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    Kind,
    NotApplicable,
    NotYet,
    check,
    check_close,
    check_differs,
    check_finite,
    check_refuses,
    check_shape,
    check_zero,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import check_all_arrive, check_drops_nothing, check_moves
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.logits import rows
from conformkit.conformance.evidence.own_draws import check_own_draws
from conformkit.conformance.evidence.own_loss import (
    Losing,
    check_pieces,
    check_shift,
    ignored,
    losing_whole,
    takes_targets,
)
from conformkit.conformance.evidence.padding_at_sizes import with_masks, with_padded_ids
from conformkit.conformance.evidence.sublayers import check_rate_used, silent
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.example_inputs import real_ids
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.padding import padding_mask, target_mask

_SIZES = (
    "src_vocab_size",
    "tgt_vocab_size",
    "d_model",
    "num_heads",
    "num_encoder_layers",
    "num_decoder_layers",
    "d_ff",
)
_HIDDEN = 1
"""A position of the target that is hidden, though it is no padding. The first one stays: no row may see nothing."""
DEPTH = 10
"""The number of components that a row of logits passes through, with two layers of each kind."""


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
    """Return for each id the next one that is not padding."""
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


@clause("S2S-LOGITS-RAW")
def test_rows_of_logits_are_no_probabilities(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    out = logits(instance, *pairs(instance, draw, 3, 5, 6))
    check("every row sums to 1: these are probabilities", not np.allclose(out.sum(axis=-1), 1.0, atol=1e-4))
    total = np.exp(np.minimum(out, 50.0)).sum(axis=-1)
    check("the exponentials of every row sum to 1: these are logarithms of probabilities",
          not np.allclose(total, 1.0, atol=1e-4))  # fmt: skip
    check("no logit is below 0", bool((out < 0).any()))


@clause("S2S-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(transformer: Subject) -> None:
    for layers in (2, 1):
        check_count(build(transformer, num_encoder_layers=layers, num_decoder_layers=layers))
    transformer.bound.require_weights()


@clause("S2S-OWN-DRAWS")
def test_each_layer_begins_with_numbers_of_its_own(transformer: Subject, draw: Draw) -> None:
    check_own_draws("the model", build(transformer, seed=draw.integer(0, 999)).read())


@clause("S2S-ASYMMETRIC")
def test_encoder_and_decoder_have_depths_of_their_own(transformer: Subject) -> None:
    least = build(transformer, num_encoder_layers=1, num_decoder_layers=1)
    for encoder, decoder in ((3, 1), (1, 3)):
        instance = build(transformer, num_encoder_layers=encoder, num_decoder_layers=decoder)
        if instance.sizes["num_encoder_layers"] == instance.sizes["num_decoder_layers"]:
            raise NotApplicable.from_sizes("the declared limits leave equal depths")
        have, want = instance.count() - least.count(), numbers(instance) - numbers(least)
        check(
            f"{encoder} and {decoder} layers have {have} numbers more than one of each, expected {want} more",
            have == want,
        )


def numbers(instance: Instance) -> int:
    return sum(math.prod(parameter.shape) for parameter in instance.canonical.values())


@clause("S2S-VOCABULARIES")
def test_every_id_of_either_vocabulary_is_taken(transformer: Subject, draw: Draw) -> None:
    for source, target in ((7, 13), (13, 7)):
        instance = build(transformer, src_vocab_size=source, tgt_vocab_size=target).scatter(draw)
        src, tgt = pairs(instance, draw, 2, 4, 5)
        src[:, -1], tgt[:, -1] = (instance.sizes[f"{side}_vocab_size"] - 1 for side in ("src", "tgt"))
        check_finite("the logits of the highest ids", logits(instance, src, tgt))


@clause("S2S-OOV")
def test_an_id_outside_its_vocabulary_is_refused(transformer: Subject, draw: Draw) -> None:
    for source, target in ((7, 13), (13, 7)):
        instance = build(transformer, src_vocab_size=source, tgt_vocab_size=target)
        for side, name in enumerate(("src", "tgt")):
            ids, size = pairs(instance, draw, 1, 4, 5), instance.sizes[f"{name}_vocab_size"]
            ids[side][:, 0] = size
            check_refuses(f"id {size} in {name}, a vocabulary of {size},", partial(logits, instance, *ids))


@clause("S2S-MAX-LEN")
def test_the_longest_sequences_are_taken(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer, max_len=6).scatter(draw)
    longest = instance.sizes["max_len"]
    for source, target in ((longest, 2), (2, longest)):
        check_finite("logits", logits(instance, *pairs(instance, draw, 1, source, target)))


def other_at_each(ids: Array, vocab_size: int, pad_id: int) -> Array:
    """Return as many copies of ids (1, T) as it has positions, each with another id at its own."""
    each = np.arange(ids.shape[1])
    changed = np.repeat(ids, len(each), axis=0)
    changed[each, each] = other_id(ids[0], vocab_size, pad_id)
    return changed


@clause("S2S-CAUSAL")
def test_later_target_ids_leave_earlier_logits_unchanged(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 1, 4, 6)
    changed = other_at_each(tgt, instance.sizes["tgt_vocab_size"], instance.sizes["pad_id"])
    before = logits(instance, src, tgt)
    by = np.abs(logits(instance, np.repeat(src, len(changed), axis=0), changed) - before).max(axis=-1)
    tolerance = 10 * transformer.tolerance(DEPTH)
    check_zero("the change of the logits at t when the id changes at j > t", np.triu(by.T, 1), at_most=tolerance)
    check(
        "the logits do not depend on the id at their own position",
        bool((np.diag(by) > 1e-6).all()),
        kind=Kind.NO_EFFECT,
    )


@clause("S2S-SRC-DEP")
def test_every_source_id_moves_every_row_of_logits(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 1, 6, 4)
    changed = other_at_each(src, instance.sizes["src_vocab_size"], instance.sizes["pad_id"])
    out = logits(instance, changed, np.repeat(tgt, len(changed), axis=0))
    check_moves("source id", np.abs(out - logits(instance, src, tgt)).max(axis=-1))


@clause("S2S-SRC-ORDER")
def test_the_source_in_another_order_gives_other_logits(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 6, 4)
    check_order(src.shape[1])
    src[:] = distinct(instance, "src", src.shape[1])
    turned = src[:, draw.permutation(src.shape[1])]
    check_differs(
        "the logits for the source in another order", logits(instance, turned, tgt), logits(instance, src, tgt)
    )


@clause("S2S-TGT-ORDER")
def test_the_target_in_another_order_gives_other_logits(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer, num_decoder_layers=1).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 4, 6)
    check_order(tgt.shape[1] - 1)
    tgt[:] = distinct(instance, "tgt", tgt.shape[1])
    turned = tgt.copy()
    turned[:, :-1] = tgt[:, draw.permutation(tgt.shape[1] - 1)]
    last = (logits(instance, src, ids)[:, -1] for ids in (turned, tgt))
    check_differs("the last logits for the earlier target in another order", *last)


def check_order(positions: int) -> None:
    if positions < 2:
        raise NotApplicable.from_sizes("the declared limits allow nothing to reorder")


def distinct(instance: Instance, side: str, count: int) -> Array:
    """Return ids without padding that all differ, as far as the vocabulary allows."""
    size, pad = instance.sizes[f"{side}_vocab_size"], instance.sizes["pad_id"]
    return np.asarray((pad + 1 + np.arange(count) % max(size - 1, 1)) % size)


@clause("S2S-SRC-PAD")
def test_padding_of_the_source_leaves_the_logits_unchanged(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 4, 5)
    before = logits(instance, src, tgt)
    for length in (5, 8):
        got = logits(instance, padded(instance, src, length), tgt)
        label = f"the logits, the source padded to {length} positions,"
        check_close(label, got, before, transformer.tolerance(DEPTH))


@clause("S2S-TGT-PAD")
def test_padding_of_the_target_leaves_its_logits_unchanged(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 5, 4)
    before = logits(instance, src, tgt)
    for length in (5, 8):
        got = logits(instance, src, padded(instance, tgt, length))[:, : tgt.shape[1]]
        label = f"the logits, the target padded to {length} positions,"
        check_close(label, got, before, transformer.tolerance(DEPTH))


def padded(instance: Instance, ids: Array, length: int) -> Array:
    """Return ids (B, T) with padding appended, as far as the model allows."""
    longest = max(min(instance.subject.tokens(length), instance.sizes["max_len"]), ids.shape[1])
    found = np.full((len(ids), longest), instance.sizes["pad_id"])
    found[:, : ids.shape[1]] = ids
    return found


def ragged(instance: Instance, draw: Draw) -> list[tuple[Array, Array]]:
    """Return three pairs src (1, S), tgt (1, T) of different lengths."""
    return [pairs(instance, draw, 1, source, target) for source, target in ((6, 3), (2, 5), (4, 2))]


def beside(instance: Instance, apart: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the pairs side by side, padded to the longest."""
    longest = [max(ids.shape[1] for ids in side) for side in zip(*apart, strict=True)]
    src, tgt = (
        np.concatenate([padded(instance, pair[side], longest[side]) for pair in apart]) for side in (0, 1)
    )  # fmt: skip
    return src, tgt


@clause("S2S-BATCH-INDEP")
def test_each_pair_gives_the_same_logits_in_any_batch(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    apart = ragged(instance, draw)
    together = logits(instance, *beside(instance, apart))
    for number, (src, tgt) in enumerate(apart):
        alone = logits(instance, src, tgt)[0]
        got = together[number, : tgt.shape[1]]
        check_close(f"logits of pair {number} batched with others", got, alone, transformer.tolerance(DEPTH))


@clause("S2S-TGT-MASK-USED")
def test_a_given_mask_of_the_target_hides_what_is_no_padding(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 5, 5)
    if tgt.shape[1] < _HIDDEN + 2:
        raise NotApplicable("no target is long enough for a hidden position with ids on both sides")
    src_mask, seen = masks(instance, src, tgt)
    others = np.arange(tgt.shape[1]) != _HIDDEN
    changed = np.where(others, tgt, other_id(tgt, instance.sizes["tgt_vocab_size"], instance.sizes["pad_id"]))
    before, after = (instance(src, ids, src_mask, seen & others)[:, others] for ids in (tgt, changed))
    label = f"the logits of the other positions, another id at position {_HIDDEN} of the target, which is hidden,"
    check_close(label, after, before, transformer.tolerance(DEPTH))


@clause("S2S-MASKS-BUILT")
def test_without_masks_padding_and_future_are_hidden_all_the_same(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    whole = pairs(instance, draw, 2, 6, 4)  # without padding, only the future can be visible
    got, want = instance(*whole), logits(instance, *whole)
    check_close("logits of pairs without padding, no mask given,", got, want, transformer.tolerance(DEPTH))
    src, tgt = beside(instance, ragged(instance, draw))
    real = tgt != instance.sizes["pad_id"]
    got, want = instance(src, tgt)[real], logits(instance, src, tgt)[real]
    check_close("logits at real positions, no mask given,", got, want, transformer.tolerance(DEPTH))


@clause("S2S-ENCODE-DECODE")
def test_the_halves_give_what_the_whole_gives(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer, dropout=0.5 if transformer.offers("dropout") else 0.0).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 6, 4)
    src_mask, tgt_mask = masks(instance, src, tgt)
    memory = instance.call(src, src_mask, method="encode").out
    halves = instance.call(tgt, memory, tgt_mask, src_mask, method="decode").out
    check_close("decode(tgt, encode(src))", halves, logits(instance, src, tgt), transformer.tolerance(DEPTH))


def steps(instance: Instance, src: Array, tgt: Array) -> Array:
    """Return the last row of logits of every prefix of the target."""
    src_mask = masks(instance, src, tgt)[0]
    memory = instance.call(src, src_mask, method="encode").out
    rows = []
    for count in range(1, tgt.shape[1] + 1):
        prefix = tgt[:, :count]
        tgt_mask = target_mask(prefix, instance.sizes["pad_id"])
        rows.append(instance.call(prefix, memory, tgt_mask, src_mask, method="decode").out[:, -1])
    return np.stack(rows, axis=1)


@clause("S2S-STEP")
def test_each_step_gives_its_row_of_the_whole(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 4, 6)
    check_close("the last logits of each prefix", steps(instance, src, tgt), logits(instance, src, tgt),
                transformer.tolerance(DEPTH))  # fmt: skip


@clause("S2S-STEP-MASK")
def test_steps_hide_the_padding_of_the_memory(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 3, 4)
    together = steps(instance, padded(instance, src, 7), tgt)
    want = logits(instance, src, tgt)
    check_close("the last logits of each prefix, the source padded,", together, want, transformer.tolerance(DEPTH))


@clause("S2S-EMBED-TGT")
def test_past_silent_layers_the_target_s_embedding_shows(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).randomize(draw)
    instance.write(biases_alone(instance))
    src, tgt = pairs(instance, draw, 2, 5, 6)
    got, want = logits(instance, src, tgt), instance.expected(src, tgt, *masks(instance, src, tgt))
    check_close("logits, sublayers giving a bias at most,", got, want, transformer.tolerance(4))


@clause("S2S-EMBED-SRC")
def test_past_silent_layers_the_source_s_embedding_shows(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).randomize(draw)
    instance.write(biases_alone(instance))
    src, _ = pairs(instance, draw, 2, 6, 2)
    mask = padding_mask(src, instance.sizes["pad_id"])
    got, want = instance.call(src, mask, method="encode").out, instance.expected(src, mask, method="encode")
    check_close("the memory, with sublayers that give at most a bias,", got, want, transformer.tolerance(4))


def biases_alone(instance: Instance) -> dict[str, Array]:
    """Return weights with which sublayers give nothing, but attention its last bias, where it has one.

    A norm hides the size of its input; next to a constant the size shows.
    """
    biases = ("attention.out.bias", "attention.v.bias")
    written = silent(instance, *all_sublayers(instance))
    return {name: values for name, values in written.items() if not name.endswith(biases)}


def all_sublayers(instance: Instance) -> list[str]:
    parts = {"encoder": ("attention", "feed_forward"),
             "decoder": ("self_attention", "cross_attention", "feed_forward")}  # fmt: skip
    return [
        f"{side}.layers.{layer}.{name}"
        for side, names in parts.items() for layer in range(instance.sizes[f"num_{side}_layers"]) for name in names
    ]  # fmt: skip


@clause("S2S-TIE")
def test_equal_rows_of_the_target_embedding_are_equal_rows_of_the_head(transformer: Subject, draw: Draw) -> None:
    name = "src_embedding.weight" if transformer.variant.shared_embeddings else "tgt_embedding.weight"
    for instance in of_one_and_two_sizes(transformer, draw):
        src, tgt, twins = with_twins(instance, draw)
        check_read_alike(instance, src, tgt, twins, name)
        got = logits(instance, src, tgt)
        label = f"the logits of id {twins[0]}, whose row is that of id {twins[1]},"
        check_close(label, got[..., twins[0]], got[..., twins[1]], transformer.tolerance(4))


@clause("S2S-SHARED")
def test_equal_rows_of_the_source_embedding_are_equal_targets(transformer: Subject, draw: Draw) -> None:
    for instance in of_one_and_two_sizes(transformer, draw):
        check_read_alike(instance, *with_twins(instance, draw), "src_embedding.weight")


def of_one_and_two_sizes(transformer: Subject, draw: Draw) -> Iterator[Instance]:
    """Yield models with silenced sublayers, also with equal vocabularies: there any matrix has the right shape."""
    for options in ({}, {"src_vocab_size": 13, "tgt_vocab_size": 13}):
        instance = build(transformer, **options).randomize(draw)
        instance.write(silent(instance, *all_sublayers(instance)))
        if transformer.variant.head_bias:
            instance.write({"head.bias": np.zeros_like(instance.weights["head.bias"])})
        yield instance


def with_twins(instance: Instance, draw: Draw) -> tuple[Array, Array, tuple[int, int]]:
    """Return pairs src, tgt, and two ids, of which the first ends each target."""
    src, tgt = pairs(instance, draw, 2, 5, 6)
    sizes = instance.sizes
    one, other = np.delete(np.arange(sizes["tgt_vocab_size"]), sizes["pad_id"])[-2:].tolist()
    tgt[:, -1] = one
    return src, tgt, (one, other)


def check_read_alike(instance: Instance, src: Array, tgt: Array, twins: tuple[int, int], name: str) -> None:
    """Write the same row for two ids, and compare the results of reading one and the other."""
    exchanged = tgt.copy()
    exchanged[:, -1] = twins[1]
    check_differs("the logits after another id", logits(instance, src, tgt), logits(instance, src, exchanged),
                  at_least=1e-3)  # fmt: skip
    rows = instance.weights[name].copy()
    rows[twins[0]] = rows[twins[1]]
    instance.write({name: rows})
    got, want = logits(instance, src, exchanged), logits(instance, src, tgt)
    label = f"the logits after id {twins[1]}, whose row of {name} is that of id {twins[0]},"
    check_close(label, got, want, instance.subject.tolerance(4))


@clause("S2S-ORACLE")
def test_the_logits_are_those_of_the_definition(transformer: Subject, draw: Draw) -> None:
    for width, heads, encoder, decoder in ((12, 3, 2, 3), (8, 1, 1, 1), (8, 4, 3, 1)):
        instance = build(transformer, width, heads, num_encoder_layers=encoder, num_decoder_layers=decoder)
        instance.randomize(draw)
        for src, tgt in (pairs(instance, draw, 3, 2, 6), pairs(instance, draw, 1, 1, 1), ragged_batch(instance, draw)):
            real = tgt != instance.sizes["pad_id"]
            want = instance.expected(src, tgt, *masks(instance, src, tgt))[real]
            check_close("logits", logits(instance, src, tgt)[real], want, transformer.tolerance(DEPTH))


def ragged_batch(instance: Instance, draw: Draw) -> tuple[Array, Array]:
    return beside(instance, ragged(instance, draw))


@clause("S2S-GRAD-ALL")
def test_gradients_reach_every_parameter(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer).scatter(draw)
    src, tgt = pairs(instance, draw, 3, 6, 6)
    check_all_arrive(instance, draw, (src, tgt, *masks(instance, src, tgt)))


@clause("S2S-GRAD-SIZES")
def test_gradients_are_right_at_every_size(transformer: Subject, draw: Draw) -> None:
    check_gradients_at_sizes(transformer, draw, after="S2S-ORACLE", padded=with_masks)


@clause("S2S-DROPOUT-EVAL")
def test_evaluation_drops_nothing(transformer: Subject, draw: Draw) -> None:
    instance = build(transformer, dropout=0.5).scatter(draw)
    src, tgt = pairs(instance, draw, 2, 5, 6)
    plain = build(transformer, dropout=0.0)
    check_drops_nothing(instance, plain, (src, tgt, *masks(instance, src, tgt)))


@clause("S2S-DROPOUT-USED")
def test_a_dropout_rate_that_is_accepted_is_used(transformer: Subject, draw: Draw) -> None:
    instance, plain = (build(transformer, dropout=rate).randomize(draw) for rate in (0.5, 0.0))
    src, tgt = pairs(instance, draw, 2, 5, 6)
    check_rate_used(instance, plain, (src, tgt, *masks(instance, src, tgt)))


@clause("S2S-SIZES")
def test_the_logits_equal_the_definition_at_every_size(transformer: Subject, draw: Draw) -> None:
    check_definition_at_sizes(
        transformer,
        draw,
        after="S2S-ORACLE",
        depth=3,
        coverage="some bands and marks",
        padded=with_padded_ids,
        plain=False,
    )


@clause("S2S-LOSS-SHIFT")
def test_own_targets_are_shifted_once_or_not_at_all(transformer: Subject, draw: Draw) -> None:
    check_shift(_losing(transformer, draw), draw, {0, 1})


@clause("S2S-LOSS-MEAN")
def test_the_loss_of_own_targets_is_a_mean_over_those_that_count(transformer: Subject, draw: Draw) -> None:
    loss = _losing(transformer, draw)
    shift = loss.shift(draw)
    if shift not in {0, 1}:
        raise NotYet("S2S-LOSS-SHIFT")
    check_pieces(loss, draw, shift, ignored(loss, [transformer.sizes()["pad_id"]]))


def _losing(transformer: Subject, draw: Draw) -> Losing:
    takes_targets(transformer)
    instance = build(transformer).scatter(draw)
    batch = rows(transformer, 3)
    src, tgt = pairs(instance, draw, batch, 5, 6)
    targets = real_ids(draw, instance.sizes["tgt_vocab_size"], instance.sizes["pad_id"], *tgt.shape)
    return losing_whole(instance, (src, tgt, *masks(instance, src, tgt)), targets, {})
