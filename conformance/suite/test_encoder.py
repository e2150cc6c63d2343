"""Clauses of spec/encoder.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check_close,
    check_differs,
    check_finite,
    check_shape,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import (
    check_all_arrive,
    check_drops_nothing,
    check_hidden_in_training,
    check_kept,
    check_moves,
    check_still,
    keys_mask,
    moved,
)
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.nothing_shown import check_nothing_shown
from conformkit.conformance.evidence.padding_at_sizes import with_hidden_positions
from conformkit.conformance.evidence.sublayers import (
    build,
    check_each_varies,
    check_in_turn,
    check_rate_used,
    check_varies,
    layers_of,
    silent,
)
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array


def inputs(instance: Instance, draw: Draw, batch: int, tokens: int, scale: float = 1.0) -> Array:
    return draw.values(batch, instance.subject.tokens(tokens), instance.sizes["d_model"], scale=scale)


@clause("ENC-SHAPE")
def test_any_batch_and_any_number_of_positions_keep_their_shape(encoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        instance = build(encoder_layer, width, heads, hidden)
        for batch, tokens in ((2, 5), (1, 1), (3, 4)):
            x = inputs(instance, draw, batch, tokens)
            check_shape("output", y := instance(x), x.shape)
            check_finite("output", y)


@clause("ENC-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(encoder_layer: Subject) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        check_count(build(encoder_layer, width, heads, hidden))
    encoder_layer.bound.require_weights()


@clause("ENC-BIDIR")
def test_every_position_sees_the_whole_source(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    check_moves("position", moved(instance, draw, (inputs(instance, draw, 1, 6),), 0))


@clause("ENC-PERM-EQUIV")
def test_permuted_positions_give_permuted_outputs(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    x = inputs(instance, draw, 2, 6)
    order = draw.permutation(x.shape[1])
    y = instance(x)
    check_close("output, positions permuted", instance(x[:, order]), y[:, order], encoder_layer.tolerance(2))


@clause("ENC-BATCH-INDEP")
def test_a_sequence_gives_the_same_output_in_any_batch(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    x = inputs(instance, draw, 3, 3)
    together = instance(x)
    check_differs("the output for another sequence", together[0], together[1])
    for one in range(3):
        alone = instance(x[one : one + 1])[0]
        check_close(f"output of sequence {one} alone", alone, together[one], encoder_layer.tolerance(2))


def padded(instance: Instance, draw: Draw, *counts: int) -> tuple[Array, Array]:
    """Return x (B, S, D) and which rows are real: all but some at the end, for each sequence."""
    x = inputs(instance, draw, len(counts), 6)
    if x.shape[1] <= max(counts):
        raise NotApplicable.from_sizes("the declared limits allow only sequences too short to pad")
    return x, np.arange(x.shape[1])[None] < x.shape[1] - np.array(counts)[:, None]


@clause("ENC-MASK-POLARITY")
def test_real_positions_have_influence(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    x, real = padded(instance, draw, 2)
    check_moves("real position", moved(instance, draw, (x, keys_mask(real)), 0)[real[0]][:, real[0]])


@clause("ENC-PAD")
def test_padded_positions_leave_real_ones_unchanged(encoder_layer: Subject, draw: Draw) -> None:
    check_pad(build(encoder_layer).scatter(draw), draw)
    if encoder_layer.offers("dropout") and encoder_layer.offers("modes"):
        instance = build(encoder_layer, dropout=0.5).scatter(draw)
        x, real = padded(instance, draw, 2, 0)
        other = np.where(real[..., None], x, draw.values(*x.shape))
        check_hidden_in_training(instance, (x, keys_mask(real)), (other, keys_mask(real)), real)


def check_pad(instance: Instance, draw: Draw) -> None:
    for count in (2, 1):
        x, real = padded(instance, draw, count)
        by = moved(instance, draw, (x, keys_mask(real)), 0)[~real[0]][:, real[0]]
        check_still("the change at real positions when padding changes", by, instance.subject.tolerance(2))
    x, real = padded(instance, draw, 0, 3)
    real[-1] = False
    some, none, unmasked = (instance(x, *mask)[-1] for mask in ([keys_mask(real)], [keys_mask(0 * real > 0)], []))
    label = "the output of a sequence of padding, where there is nothing but padding,"
    check_nothing_shown(label, some, none, unmasked, instance.subject.tolerance(2))


@clause("ENC-PAD-INVARIANCE")
def test_appended_padding_leaves_real_positions_unchanged(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    x, real = padded(instance, draw, 1, 4, 0)
    together = instance(x, keys_mask(real))
    for one, own in enumerate(real):
        alone = instance(x[one : one + 1, own])[0]
        label = f"output of sequence {one}, {int((~own).sum())} rows of padding appended"
        check_close(label, together[one, own], alone, encoder_layer.tolerance(2))


SUBLAYERS = ("attention", "feed_forward")


@clause("ENC-RESIDUALS")
def test_past_silent_sublayers_x_goes_on(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).randomize(draw)
    instance.write(silent(instance, *SUBLAYERS))
    for scale in (3.0, 300.0):
        x = inputs(instance, draw, 2, 5, scale=scale)
        check_close("output", instance(x), instance.expected(x), encoder_layer.tolerance(2))


@clause("ENC-ATTENTION")
def test_the_attention_half_is_that_of_the_definition(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).randomize(draw)
    instance.write(silent(instance, "feed_forward"))
    for scale in (1.0, 10.0):
        x = inputs(instance, draw, 2, 5, scale=scale)
        check_close("output, the network silent,", instance(x), instance.expected(x), encoder_layer.tolerance(2))


@clause("ENC-FFN")
def test_the_network_half_is_that_of_the_definition(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).randomize(draw)
    instance.write(silent(instance, "attention"))
    for scale in (1.0, 10.0):
        x = inputs(instance, draw, 2, 5, scale=scale)
        check_close("output, attention silent,", instance(x), instance.expected(x), encoder_layer.tolerance(2))


@clause("ENC-ORDER")
def test_the_layer_is_attention_half_then_network_half(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).randomize(draw)
    check_in_turn(instance, SUBLAYERS, inputs(instance, draw, 3, 5, scale=10.0))


@clause("ENC-ORACLE")
def test_the_output_is_that_of_the_definition(encoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 1, 9), (8, 4, 20)):
        instance = build(encoder_layer, width, heads, hidden).randomize(draw)
        for batch, tokens, scale in ((2, 6, 1.0), (2, 3, 0.003), (1, 1, 300.0), (1, 35, 1.0)):
            x = inputs(instance, draw, batch, tokens, scale=scale)
            check_close("output", instance(x), instance.expected(x), encoder_layer.tolerance(2))
        if encoder_layer.offers("masks"):
            x = inputs(instance, draw, 3, 6)
            mask = keys_mask(draw.mask(*x.shape[:2]))
            check_close(
                "output, with a mask,", instance(x, mask), instance.expected(x, mask), encoder_layer.tolerance(2)
            )


@clause("ENC-GRAD-ALL")
def test_gradients_reach_everything(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    check_all_arrive(instance, draw, (inputs(instance, draw, 2, 5),))


@clause("ENC-DROPOUT-EVAL")
def test_evaluation_drops_nothing(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer, dropout=0.5).scatter(draw)
    check_drops_nothing(instance, build(encoder_layer, dropout=0.0), (inputs(instance, draw, 2, 5),))


@clause("ENC-DROPOUT-TRAIN")
def test_training_varies_with_dropout_and_not_without(encoder_layer: Subject, draw: Draw) -> None:
    instance, plain = (build(encoder_layer, dropout=rate).randomize(draw) for rate in (0.5, 0.0))
    check_varies(instance, plain, (inputs(instance, draw, 2, 5),))


@clause("ENC-DROPOUT-EACH")
def test_training_varies_in_each_sublayer(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer, dropout=0.5).randomize(draw)
    check_each_varies(instance, SUBLAYERS, (inputs(instance, draw, 2, 5),))


@clause("ENC-INPUT-KEPT")
def test_the_arguments_stay_as_they_are(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    x, real = padded(instance, draw, 1, 0)
    check_kept(instance, (x, *((keys_mask(real),) if encoder_layer.offers("masks") else ())))


@clause("ENC-STACK-COUNT")
def test_each_layer_has_parameters_of_its_own(encoder: Subject) -> None:
    for layers in (1, 3):
        check_count(build(encoder, num_layers=layers))
    encoder.bound.require_weights()


@clause("ENC-FINAL-NORM")
def test_past_silent_layers_there_is_the_last_norm_alone(encoder: Subject, draw: Draw) -> None:
    instance = build(encoder, num_layers=2).randomize(draw)
    instance.write(silent(instance, *layers_of(instance, SUBLAYERS)))
    x = inputs(instance, draw, 2, 5, scale=3.0)
    check_close("output", instance(x), instance.expected(x), encoder.tolerance(2))


@clause("ENC-STACK-PAD")
def test_padding_stays_out_of_every_layer(encoder: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        check_pad(build(encoder, num_layers=layers).scatter(draw), draw)


@clause("ENC-STACK-DROPOUT")
def test_a_dropout_rate_that_is_accepted_reaches_the_layers(encoder: Subject, draw: Draw) -> None:
    instance, plain = (build(encoder, num_layers=2, dropout=rate).randomize(draw) for rate in (0.5, 0.0))
    check_rate_used(instance, plain, (inputs(instance, draw, 2, 5),))


@clause("ENC-STACK")
def test_the_stack_is_that_of_the_definition(encoder: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        instance = build(encoder, num_layers=layers).randomize(draw)
        under(f"num_layers = {instance.sizes['num_layers']}")
        x = inputs(instance, draw, 2, 5)
        check_close("output", instance(x), instance.expected(x), encoder.tolerance(2 * layers + 1))
        if encoder.offers("masks"):
            mask = keys_mask(draw.mask(*x.shape[:2]))
            got, want = instance(x, mask), instance.expected(x, mask)
            check_close("output, with a mask,", got, want, encoder.tolerance(2 * layers + 1))


@clause("ENC-SIZES")
def test_the_output_equals_the_definition_at_every_size(encoder_layer: Subject, draw: Draw) -> None:
    check_definition_at_sizes(
        encoder_layer, draw, after="ENC-ORACLE", depth=2, coverage="some bands and marks", padded=with_hidden_positions
    )


@clause("ENC-STACK-SIZES")
def test_the_stack_equals_the_definition_at_every_size(encoder: Subject, draw: Draw) -> None:
    check_definition_at_sizes(
        encoder, draw, after="ENC-STACK", depth=3, coverage="some bands and marks", padded=with_hidden_positions
    )


@clause("ENC-STACK-GRAD-SIZES")
def test_gradients_are_right_at_every_size(encoder: Subject, draw: Draw) -> None:
    check_gradients_at_sizes(encoder, draw, after="ENC-STACK")
