"""Clauses of spec/bert_model.md."""

from __future__ import annotations

from functools import partial

from conformkit.conformance.assertions.checks import check, check_differs, check_finite, check_shape
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
    check_reads_all,
    check_real_positions,
    check_refused,
    check_rows,
    check_segments,
    check_too_long,
    plain_norms,
    quiet,
    text,
    with_trained_segments,
)
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.own_draws import check_own_draws
from conformkit.conformance.evidence.padding_at_sizes import with_padded_text
from conformkit.conformance.evidence.sublayers import check_stream_kept, check_varies
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause

DEPTH = 8
"""The number of components that a hidden row passes through, with three layers."""


@clause("BERT-SHAPE")
def test_each_id_gives_a_hidden_row(bert_model: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (8, 2)):
        instance = build(bert_model, width, heads)
        check_rows(instance, draw, instance.sizes["d_model"])


@clause("BERT-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(bert_model: Subject) -> None:
    for layers in (2, 1, 3):
        check_count(build(bert_model, num_layers=layers))
    bert_model.bound.require_weights()


@clause("BERT-OWN-DRAWS")
def test_each_layer_begins_with_numbers_of_its_own(bert_model: Subject, draw: Draw) -> None:
    check_own_draws("the model", build(bert_model, seed=draw.integer(0, 999)).read())


@clause("BERT-BIDIR")
def test_every_position_reads_every_id(bert_model: Subject, draw: Draw) -> None:
    check_reads_all(build(bert_model, num_layers=1).scatter(draw), draw)


@clause("BERT-SEGMENTS")
def test_every_position_reads_every_segment(bert_model: Subject, draw: Draw) -> None:
    check_segments(build(bert_model, num_layers=1).scatter(draw), draw)


@clause("BERT-ORDER")
def test_ids_in_another_order_give_other_rows(bert_model: Subject, draw: Draw) -> None:
    check_another_order(build(bert_model).scatter(draw), draw)


@clause("BERT-BATCH-INDEP")
def test_a_text_gives_the_same_in_any_batch(bert_model: Subject, draw: Draw) -> None:
    check_alone(build(bert_model).scatter(draw), draw)


@clause("BERT-MASK-POLARITY")
def test_what_the_mask_shows_is_read(bert_model: Subject, draw: Draw) -> None:
    check_real_positions(build(bert_model, num_layers=1).scatter(draw), draw)


@clause("BERT-PAD")
def test_padding_changes_nothing(bert_model: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        check_padding(build(bert_model, num_layers=layers).scatter(draw), draw)
    check_padding_in_training(bert_model, draw)


@clause("BERT-MAX-LEN")
def test_the_longest_text_is_accepted(bert_model: Subject, draw: Draw) -> None:
    check_longest(bert_model, draw)


@clause("BERT-OOV")
def test_what_is_in_no_table_is_refused(bert_model: Subject, draw: Draw) -> None:
    check_refused(build(bert_model), draw)
    check_too_long(bert_model, draw)


@clause("BERT-EMBED")
def test_past_silent_layers_the_embeddings_show(bert_model: Subject, draw: Draw) -> None:
    check_part(build(bert_model).randomize(draw), draw, ("attention", "feed_forward"), "output, sublayers silent")


@clause("BERT-ATTENTION")
def test_the_attention_halves_are_those_of_the_definition(bert_model: Subject, draw: Draw) -> None:
    for heads, layers in ((3, 1), (4, 2)):
        instance = build(bert_model, heads=heads, num_layers=layers).randomize(draw)
        inputs = text(instance, draw, 2, 7)
        check_extreme_scores(instance, partial(instance, *inputs))
        check_part(instance, draw, ("feed_forward",), "output, the networks silent")


@clause("BERT-FFN")
def test_the_network_halves_are_those_of_the_definition(bert_model: Subject, draw: Draw) -> None:
    for layers in (1, 2):
        instance = build(bert_model, num_layers=layers).randomize(draw)
        check_part(instance, draw, ("attention",), "output, attention silent")


@clause("BERT-ORACLE")
def test_the_hidden_rows_are_those_of_the_definition(bert_model: Subject, draw: Draw) -> None:
    check_oracle(bert_model, draw, DEPTH)


@clause("BERT-SIZES")
def test_the_output_equals_the_definition_at_every_size(bert_model: Subject, draw: Draw) -> None:
    check_definition_at_sizes(
        bert_model, draw, after="BERT-ORACLE", depth=3, coverage="some bands and marks", padded=with_padded_text
    )


@clause("BERT-POOL-SHAPE")
def test_each_text_gives_a_pooled_row(bert_model: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (8, 2)):
        instance = build(bert_model, width, heads).scatter(draw)
        ids, segments = text(instance, draw, 3, 5)
        pooled = instance.call(ids, segments, method="pool").out
        check_shape("the pooled row", pooled, (len(ids), instance.sizes["d_model"]))
        check_finite("the pooled row", pooled)
        low, high = float(pooled.min()), float(pooled.max())
        check(
            f"the pooled rows go from {low:.6g} to {high:.6g}, beyond ±1: they are no tanh", -1.0 <= low <= high <= 1.0
        )


@clause("BERT-POOL")
def test_the_pooled_row_is_tanh_of_a_map_of_the_first(bert_model: Subject, draw: Draw) -> None:
    check_oracle(bert_model, draw, DEPTH + 1, method="pool")


@clause("BERT-GRAD-ALL")
def test_gradients_reach_every_parameter(bert_model: Subject, draw: Draw) -> None:
    instance = build(bert_model).scatter(draw)
    check_gradients_reach(instance, draw, text(instance, draw, 3, 6))


@clause("BERT-GRAD-SIZES")
def test_gradients_are_right_at_every_size(bert_model: Subject, draw: Draw) -> None:
    check_gradients_at_sizes(bert_model, draw, after="BERT-ORACLE", padded=with_trained_segments)


@clause("BERT-DROPOUT-EVAL")
def test_evaluation_drops_nothing(bert_model: Subject, draw: Draw) -> None:
    instance = build(bert_model, dropout=0.5).scatter(draw)
    check_drops_nothing(instance, build(bert_model, dropout=0.0), text(instance, draw, 2, 5))


@clause("BERT-DROPOUT-TRAIN")
def test_training_varies_with_dropout_and_not_without(bert_model: Subject, draw: Draw) -> None:
    instance, plain = (build(bert_model, dropout=rate).scatter(draw) for rate in (0.5, 0.0))
    inputs = text(instance, draw, 2, 5)
    check_varies(instance, plain, inputs)
    check_plain_in_training(plain, inputs)
    check_layers_drop(instance.randomize(draw), inputs, "embedding_norm.")


@clause("BERT-DROPOUT-RESIDUAL")
def test_training_leaves_the_residual_path_alone(bert_model: Subject, draw: Draw) -> None:
    instance = build(bert_model, dropout=0.5, num_layers=3).randomize(draw)
    instance.write({**quiet(instance, "attention", "feed_forward"), **plain_norms(instance)})
    inputs = text(instance, draw, 16, 8)
    first, second = (instance(*inputs, mode="train", seed=seed) for seed in (1, 2))
    check_differs("output in training mode, sublayers silent, dropout 0.5, another seed,", first, second)
    check_stream_kept(instance(*inputs, mode="train", seed=1).reshape(-1, instance.sizes["d_model"]))


@clause("BERT-KEPT")
def test_the_arguments_stay_as_they_are(bert_model: Subject, draw: Draw) -> None:
    instance = build(bert_model)
    check_kept(instance, text(instance, draw, 2, 5))
