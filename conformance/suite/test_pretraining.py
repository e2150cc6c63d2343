"""Clauses of spec/pretraining.md."""

from __future__ import annotations

from functools import partial

import numpy as np

from conformkit.conformance.assertions.checks import NotYet, check_close, check_differs, check_finite, check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import check_drops_nothing, check_kept
from conformkit.conformance.evidence.encoder_texts import (
    build,
    check_alone,
    check_another_order,
    check_extreme_scores,
    check_gradients_reach,
    check_layers_drop,
    check_longest,
    check_oracle,
    check_padding,
    check_padding_in_training,
    check_part,
    check_plain_in_training,
    check_raw,
    check_reads_all,
    check_real_positions,
    check_refused,
    check_rows,
    check_segments,
    check_too_long,
    quiet,
    text,
    with_trained_segments,
)
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.logits import rows
from conformkit.conformance.evidence.own_draws import check_own_draws
from conformkit.conformance.evidence.own_loss import (
    Losing,
    check_ignored,
    check_pieces,
    check_shift,
    ignored,
    losing_whole,
    takes_targets,
)
from conformkit.conformance.evidence.padding_at_sizes import with_padded_text
from conformkit.conformance.evidence.sublayers import check_varies
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.subject.example_inputs import real_ids
from conformkit.conformance.suite.registry import clause

DEPTH = 10
"""The number of components that a row of logits passes through, with three layers."""


@clause("BPRE-SHAPE")
def test_each_id_gives_a_row_of_logits(pretraining: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (8, 2)):
        instance = build(pretraining, width, heads)
        check_rows(instance, draw, instance.sizes["vocab_size"])


@clause("BPRE-RAW")
def test_rows_of_logits_are_no_probabilities(pretraining: Subject, draw: Draw) -> None:
    instance = build(pretraining).scatter(draw)
    given = text(instance, draw, 3, 6)
    check_raw(instance, draw, lambda: instance(*given))


@clause("BPRE-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(pretraining: Subject) -> None:
    for layers in (2, 1, 3):
        check_count(build(pretraining, num_layers=layers))
    pretraining.bound.require_weights()


@clause("BPRE-OWN-DRAWS")
def test_each_layer_begins_with_numbers_of_its_own(pretraining: Subject, draw: Draw) -> None:
    check_own_draws("the model", build(pretraining, seed=draw.integer(0, 999)).read())


@clause("BPRE-BIDIR")
def test_every_position_reads_every_id(pretraining: Subject, draw: Draw) -> None:
    check_reads_all(build(pretraining, num_layers=1).scatter(draw), draw)


@clause("BPRE-SEGMENTS")
def test_every_position_reads_every_segment(pretraining: Subject, draw: Draw) -> None:
    check_segments(build(pretraining, num_layers=1).scatter(draw), draw)


@clause("BPRE-ORDER")
def test_ids_in_another_order_give_other_rows(pretraining: Subject, draw: Draw) -> None:
    check_another_order(build(pretraining).scatter(draw), draw)


@clause("BPRE-BATCH-INDEP")
def test_a_text_gives_the_same_in_any_batch(pretraining: Subject, draw: Draw) -> None:
    check_alone(build(pretraining).scatter(draw), draw)


@clause("BPRE-MASK-POLARITY")
def test_what_the_mask_shows_is_read(pretraining: Subject, draw: Draw) -> None:
    check_real_positions(build(pretraining, num_layers=1).scatter(draw), draw)


@clause("BPRE-PAD")
def test_padding_changes_nothing(pretraining: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        check_padding(build(pretraining, num_layers=layers).scatter(draw), draw)
    check_padding_in_training(pretraining, draw)


@clause("BPRE-MAX-LEN")
def test_the_longest_text_is_accepted(pretraining: Subject, draw: Draw) -> None:
    check_longest(pretraining, draw)


@clause("BPRE-OOV")
def test_what_is_in_no_table_is_refused(pretraining: Subject, draw: Draw) -> None:
    check_refused(build(pretraining), draw)
    check_too_long(pretraining, draw)


@clause("BPRE-TIE")
def test_equal_rows_of_the_embedding_are_equal_logits(pretraining: Subject, draw: Draw) -> None:
    instance = build(pretraining).randomize(draw)
    one, other = np.delete(np.arange(instance.sizes["vocab_size"]), instance.sizes["pad_id"])[-2:].tolist()
    if "head.bias" in instance.weights:
        instance.write({"head.bias": np.zeros_like(instance.weights["head.bias"])})
    inputs = text(instance, draw, 2, 5)
    before = instance(*inputs)
    check_differs(f"the logits of ids {one} and {other}", before[..., one], before[..., other], at_least=1e-3)
    rows = instance.weights["embedding.weight"].copy()
    rows[one] = rows[other]
    got = instance.write({"embedding.weight": rows})(*inputs)
    label = f"the logits of id {one}, whose row is that of id {other},"
    check_close(label, got[..., one], got[..., other], pretraining.tolerance(4))


@clause("BPRE-HEAD")
def test_past_silent_layers_the_head_shows(pretraining: Subject, draw: Draw) -> None:
    instance = build(pretraining).randomize(draw)
    check_part(instance, draw, ("attention", "feed_forward"), "logits, sublayers silent")
    instance.randomize(draw)
    instance.write(quiet(instance, "attention", "feed_forward"))
    own = instance.weights
    rows = {name: 1e-5 * own[name] for name in own if name.startswith("transform.")}
    if rows and not pretraining.half:  # then the ε of the head's norm shows
        inputs = text(instance.write(rows), draw, 2, 6)
        want = instance.expected(*inputs)
        check_close("logits, a transform 1e-05 times as large,", instance(*inputs), want, pretraining.tolerance(6))


@clause("BPRE-ATTENTION")
def test_the_attention_halves_are_those_of_the_definition(pretraining: Subject, draw: Draw) -> None:
    for heads, layers in ((3, 1), (4, 2)):
        instance = build(pretraining, heads=heads, num_layers=layers).randomize(draw)
        inputs = text(instance, draw, 2, 7)
        check_extreme_scores(instance, partial(instance, *inputs))
        check_part(instance, draw, ("feed_forward",), "logits, the networks silent")


@clause("BPRE-FFN")
def test_the_network_halves_are_those_of_the_definition(pretraining: Subject, draw: Draw) -> None:
    for layers in (1, 2):
        instance = build(pretraining, num_layers=layers).randomize(draw)
        check_part(instance, draw, ("attention",), "logits, attention silent")


@clause("BPRE-ORACLE")
def test_the_logits_are_those_of_the_definition(pretraining: Subject, draw: Draw) -> None:
    check_oracle(pretraining, draw, DEPTH)


@clause("BPRE-SIZES")
def test_the_output_equals_the_definition_at_every_size(pretraining: Subject, draw: Draw) -> None:
    check_definition_at_sizes(
        pretraining, draw, after="BPRE-ORACLE", depth=3, coverage="some bands and marks", padded=with_padded_text
    )


@clause("BPRE-NEXT-SHAPE")
def test_each_text_gives_two_logits_for_the_next_sentence(pretraining: Subject, draw: Draw) -> None:
    instance = build(pretraining).scatter(draw)
    ids, segments = text(instance, draw, 3, 5)
    out = instance.call(ids, segments, method="next_sentence").out
    check_shape("the logits of the next sentence", out, (len(ids), 2))
    check_finite("the logits of the next sentence", out)
    if not pretraining.variant.log_probabilities:
        check_raw(instance, draw, lambda: instance.call(ids, segments, method="next_sentence").out)


@clause("BPRE-NEXT")
def test_the_next_sentence_is_guessed_from_the_pooled_row(pretraining: Subject, draw: Draw) -> None:
    check_oracle(pretraining, draw, DEPTH, method="next_sentence")


@clause("BPRE-GRAD-ALL")
def test_gradients_reach_every_parameter(pretraining: Subject, draw: Draw) -> None:
    instance = build(pretraining).scatter(draw)
    check_gradients_reach(instance, draw, text(instance, draw, 3, 6))


@clause("BPRE-GRAD-SIZES")
def test_gradients_are_right_at_every_size(pretraining: Subject, draw: Draw) -> None:
    check_gradients_at_sizes(pretraining, draw, after="BPRE-ORACLE", padded=with_trained_segments)


@clause("BPRE-DROPOUT-EVAL")
def test_evaluation_drops_nothing(pretraining: Subject, draw: Draw) -> None:
    instance = build(pretraining, dropout=0.5).scatter(draw)
    check_drops_nothing(instance, build(pretraining, dropout=0.0), text(instance, draw, 2, 5))


@clause("BPRE-DROPOUT-TRAIN")
def test_training_varies_with_dropout_and_not_without(pretraining: Subject, draw: Draw) -> None:
    instance, plain = (build(pretraining, dropout=rate).scatter(draw) for rate in (0.5, 0.0))
    inputs = text(instance, draw, 2, 5)
    check_varies(instance, plain, inputs)
    check_plain_in_training(plain, inputs)
    check_layers_drop(instance.randomize(draw), inputs, "embedding_norm.")


@clause("BPRE-KEPT")
def test_the_arguments_stay_as_they_are(pretraining: Subject, draw: Draw) -> None:
    instance = build(pretraining)
    check_kept(instance, text(instance, draw, 2, 5))


@clause("BPRE-LOSS-PLACE")
def test_a_label_is_compared_with_the_logits_of_its_own_place(pretraining: Subject, draw: Draw) -> None:
    check_shift(_losing(pretraining, draw), draw, {0})


@clause("BPRE-LOSS-MEAN")
def test_the_loss_of_labels_is_the_mean_over_those_that_count(pretraining: Subject, draw: Draw) -> None:
    loss = _losing(pretraining, draw)
    if loss.shift(draw) != 0:
        raise NotYet("BPRE-LOSS-PLACE")
    unused = ignored(loss, [pretraining.sizes()["pad_id"], 0])
    check_ignored(loss, draw, 0, unused)
    check_pieces(loss, draw, 0, unused)


def _losing(pretraining: Subject, draw: Draw) -> Losing:
    takes_targets(pretraining)
    instance = build(pretraining).scatter(draw)
    ids, segments = text(instance, draw, rows(pretraining, 3), 6)
    labels = np.maximum(real_ids(draw, instance.sizes["vocab_size"], instance.sizes["pad_id"], *ids.shape), 1)
    names = pretraining.bound.call_arguments
    follows = {names.next_sentence: np.arange(len(ids)) % 2} if names.next_sentence else {}
    return losing_whole(instance, (ids, segments), labels, follows)
