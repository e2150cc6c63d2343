"""Clauses of spec/decoder.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check_close,
    check_differs,
    check_finite,
    check_shape,
    check_zero,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import (
    causal,
    check_all_arrive,
    check_drops_nothing,
    check_kept,
    check_moves,
    check_still,
    keys_mask,
    moved,
)
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.nothing_shown import check_nothing_shown
from conformkit.conformance.evidence.padding_at_sizes import with_hidden_target_and_memory
from conformkit.conformance.evidence.sublayers import (
    build,
    check_each_varies,
    check_in_turn,
    check_rate_used,
    check_varies,
    layers_of,
    silent,
    with_silent,
)
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array


def inputs(
    instance: Instance, draw: Draw, batch: int, target: int, source: int, scale: float = 1.0
) -> tuple[Array, Array]:
    """Return x (B, T, D) and memory (B, S, D)."""
    tokens, width = instance.subject.tokens, instance.sizes["d_model"]
    return draw.values(batch, tokens(target), width, scale=scale), draw.values(batch, tokens(source), width)


@clause("DEC-SHAPE")
def test_the_target_decides_the_shape_of_the_output(decoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        instance = build(decoder_layer, width, heads, hidden)
        for batch, target, source in ((2, 4, 7), (3, 6, 2), (1, 1, 5), (2, 5, 1)):
            x, memory = inputs(instance, draw, batch, target, source)
            check_shape("output", y := instance(x, memory), x.shape)
            check_finite("output", y)


@clause("DEC-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(decoder_layer: Subject) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        check_count(build(decoder_layer, width, heads, hidden))
    decoder_layer.bound.require_weights()


@clause("DEC-BATCH-INDEP")
def test_a_sequence_gives_the_same_output_in_any_batch(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 3, 3, 5)
    together = instance(x, memory)
    check_differs("the output for another sequence", together[0], together[1])
    for one in range(3):
        alone = instance(x[one : one + 1], memory[one : one + 1])[0]
        check_close(f"output of sequence {one} alone", alone, together[one], decoder_layer.tolerance(3))


@clause("DEC-SELF-CAUSAL")
def test_later_positions_leave_earlier_outputs_unchanged(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    check_causal(instance, draw)
    x, memory = inputs(instance, draw, 1, 6, 4)
    by = moved(instance, draw, (x, memory, causal(x)), 0)
    check_moves("position", by + np.tri(len(by), k=-1))  # later positions count as visible


def check_causal(instance: Instance, draw: Draw) -> None:
    x, memory = inputs(instance, draw, 1, 6, 4)
    by = moved(instance, draw, (x, memory, causal(x)), 0)
    later = np.triu(by.T, 1)
    check_zero("the change of output t when x changes at j > t", later, at_most=10 * instance.subject.tolerance(3))


@clause("DEC-PREFIX")
def test_a_prefix_gives_the_same_outputs(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 2, 7, 5)
    whole = instance(x, memory, causal(x))
    for tokens in (1, 4, 6):
        part = x[:, : decoder_layer.tokens(tokens)]
        got, want = instance(part, memory, causal(part)), whole[:, : part.shape[1]]
        check_close(f"output for the first {part.shape[1]} positions", got, want, decoder_layer.tolerance(3))


@clause("DEC-MEMORY-DEP")
def test_every_position_reads_the_whole_memory(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    for target, source in ((4, 6), (6, 4)):
        x, memory = inputs(instance, draw, 1, target, source)
        mask = causal(x) if decoder_layer.offers("masks") else None
        check_moves("memory row", moved(instance, draw, (x, memory, mask), 1))


@clause("DEC-MEM-PERM")
def test_permuted_rows_of_the_memory_give_the_same_output(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 2, 4, 6)
    order = draw.permutation(memory.shape[1])
    check_close(
        "output, memory permuted", instance(x, memory[:, order]), instance(x, memory), decoder_layer.tolerance(3)
    )


@clause("DEC-MEM-PAD")
def test_hidden_rows_of_the_memory_change_nothing(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    check_memory_padding(instance, draw)
    x, memory = inputs(instance, draw, 1, 4, 6)
    real = np.arange(memory.shape[1]) < max(memory.shape[1] - 2, 1)
    by = moved(instance, draw, (x, memory, causal(x), keys_mask(real[None])), 1)
    check_moves("visible memory row", by[real])


def check_memory_padding(instance: Instance, draw: Draw) -> None:
    x, memory = inputs(instance, draw, 1, 4, 6)
    if memory.shape[1] < 2:
        raise NotApplicable.from_sizes("the declared limits allow only memories of one row")
    real = np.arange(memory.shape[1]) < max(memory.shape[1] - 2, 1)
    by = moved(instance, draw, (x, memory, causal(x), keys_mask(real[None])), 1)[~real]
    check_still("the change of the output when a hidden row changes", by, instance.subject.tolerance(3))
    x, memory = inputs(instance, draw, 2, 4, 6)
    shown = np.array([[True], [False]]).repeat(memory.shape[1], axis=1)
    masks: tuple[list[Array], ...] = ([keys_mask(shown)], [keys_mask(np.zeros_like(shown))], [])
    some, none, unmasked = (instance(x, memory, causal(x), *mask)[-1] for mask in masks)
    label = "the output of a target, where no target sees any memory,"
    check_nothing_shown(label, some, none, unmasked, instance.subject.tolerance(3))


@clause("DEC-TGT-PAD")
def test_padded_target_positions_leave_real_ones_unchanged(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 1, 6, 4)
    if x.shape[1] < 5:
        raise NotApplicable.from_sizes("the declared limits allow only targets too short to pad inside")
    for hidden in ([1, 3], [2]):  # inside, where causality hides nothing; the first position is real
        real = ~np.isin(np.arange(x.shape[1]), hidden)
        by = moved(instance, draw, (x, memory, causal(x, real[None])), 0)[~real][:, real]
        check_still("the change at real positions when padding changes", by, decoder_layer.tolerance(3))


@clause("DEC-MASKS-APART")
def test_each_mask_is_for_its_own_attention(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 1, 5, 5)
    if not 3 < x.shape[1] == memory.shape[1]:
        raise NotApplicable.from_sizes("the declared limits allow no target as long as its memory")
    check_moves("memory row", moved(instance, draw, (x, memory, causal(x)), 1))
    real = np.arange(memory.shape[1]) != 1
    by = moved(instance, draw, (x, memory, causal(x), keys_mask(real[None])), 0)
    check_moves("position", by + np.tri(len(by), k=-1))


SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")


def but(name: str) -> tuple[str, ...]:
    return tuple(other for other in SUBLAYERS if other != name)


@clause("DEC-RESIDUALS")
def test_past_silent_sublayers_x_goes_on(decoder_layer: Subject, draw: Draw) -> None:
    check_with(decoder_layer, draw, "output, every sublayer silent,", *SUBLAYERS)


@clause("DEC-SELF-ATTENTION")
def test_the_first_third_is_that_of_the_definition(decoder_layer: Subject, draw: Draw) -> None:
    check_with(decoder_layer, draw, "output, self-attention alone,", *but("self_attention"))


@clause("DEC-CROSS-KV")
def test_equal_rows_of_the_memory_add_the_same_everywhere(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).randomize(draw)
    instance.write(silent(instance, *but("cross_attention")))
    x, memory = inputs(instance, draw, 2, 5, 5)
    same = np.repeat(memory[:, :1], memory.shape[1], axis=1)
    added = instance(x, same) - x
    want = np.repeat(added[:, :1], added.shape[1], axis=1)
    check_close("what cross-attention adds, all memory rows alike,", added, want, decoder_layer.tolerance(2), scale=1.0)
    other = draw.values(*x.shape)
    got = instance(other, same) - other
    check_close("what cross-attention adds to another target,", got, added, decoder_layer.tolerance(2), scale=1.0)


@clause("DEC-CROSS-ATTENTION")
def test_the_second_third_is_that_of_the_definition(decoder_layer: Subject, draw: Draw) -> None:
    check_with(decoder_layer, draw, "output, cross-attention alone,", *but("cross_attention"))


@clause("DEC-FFN")
def test_the_last_third_is_that_of_the_definition(decoder_layer: Subject, draw: Draw) -> None:
    check_with(decoder_layer, draw, "output, the network alone,", *but("feed_forward"))


def check_with(layer: Subject, draw: Draw, label: str, *silenced: str) -> None:
    """Compare with the definition, some sublayers silenced."""
    instance = build(layer).randomize(draw)
    instance.write(silent(instance, *silenced))
    for scale in (1.0, 10.0):
        x, memory = inputs(instance, draw, 2, 5, 7, scale=scale)
        check_close(label, instance(x, memory), instance.expected(x, memory), layer.tolerance(3))


@clause("DEC-NORMS")
def test_each_norm_serves_one_sublayer(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).randomize(draw)
    x, memory = inputs(instance, draw, 2, 5, 7)
    own = dict(instance.weights)
    whole = instance(x, memory)
    for number, sublayer in enumerate(SUBLAYERS, 1):
        name, words = f"norm{number}.weight", f"weight of the norm of the {sublayer.replace('_', ' ')}"
        without = with_silent(instance, [sublayer], x, memory)
        instance.write({name: own[name] * draw.uniform(*own[name].shape, low=1.5, high=3.0)})
        check_differs(f"the output for another {words}", instance(x, memory), whole, at_least=1e-3)
        if decoder_layer.variant.placement == "pre":
            got = with_silent(instance, [sublayer], x, memory)
            label = f"the output for another {words}, its sublayer silenced,"
            check_close(label, got, without, decoder_layer.tolerance(3))
        instance.write(own)


@clause("DEC-ORDER")
def test_the_layer_is_its_three_sublayers_in_turn(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).randomize(draw)
    x, memory = inputs(instance, draw, 3, 5, 7, scale=10.0)
    check_in_turn(instance, SUBLAYERS, x, memory)


@clause("DEC-ORACLE")
def test_the_output_is_that_of_the_definition(decoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 1, 9), (8, 4, 20)):
        instance = build(decoder_layer, width, heads, hidden).randomize(draw)
        for batch, target, source, scale in ((2, 6, 4, 1.0), (2, 3, 5, 0.003), (1, 1, 7, 300.0)):
            check_defined(instance, draw, *inputs(instance, draw, batch, target, source, scale), depth=3)


@clause("DEC-GRAD-ALL")
def test_gradients_reach_everything(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    check_all_arrive(instance, draw, inputs(instance, draw, 2, 5, 6))


@clause("DEC-DROPOUT-EVAL")
def test_evaluation_drops_nothing(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer, dropout=0.5).scatter(draw)
    check_drops_nothing(instance, build(decoder_layer, dropout=0.0), inputs(instance, draw, 2, 5, 6))


@clause("DEC-DROPOUT-TRAIN")
def test_training_varies_with_dropout_and_not_without(decoder_layer: Subject, draw: Draw) -> None:
    instance, plain = (build(decoder_layer, dropout=rate).randomize(draw) for rate in (0.5, 0.0))
    check_varies(instance, plain, inputs(instance, draw, 2, 5, 6))


@clause("DEC-DROPOUT-EACH")
def test_training_varies_in_each_sublayer(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer, dropout=0.5).randomize(draw)
    check_each_varies(instance, SUBLAYERS, inputs(instance, draw, 2, 5, 6))


@clause("DEC-INPUT-KEPT")
def test_the_arguments_stay_as_they_are(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 2, 5, 6)
    masks = (causal(x), keys_mask(np.ones(memory.shape[:2]))) if decoder_layer.offers("masks") else ()
    check_kept(instance, (x, memory, *masks))


@clause("DEC-STACK-COUNT")
def test_each_layer_has_parameters_of_its_own(decoder: Subject) -> None:
    for layers in (1, 3):
        check_count(build(decoder, num_layers=layers))
    decoder.bound.require_weights()


@clause("DEC-STACK-CAUSAL")
def test_no_layer_sees_what_comes_later(decoder: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        check_causal(build(decoder, num_layers=layers).scatter(draw), draw)


@clause("DEC-STACK-MEM-PAD")
def test_hidden_rows_of_the_memory_stay_out_of_every_layer(decoder: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        check_memory_padding(build(decoder, num_layers=layers).scatter(draw), draw)


@clause("DEC-SAME-MEMORY")
def test_every_layer_reads_the_memory_as_it_is(decoder: Subject, draw: Draw) -> None:
    instance = build(decoder, num_layers=3).randomize(draw)
    own = dict(instance.weights)
    x, memory = inputs(instance, draw, 2, 5, 7)
    every = layers_of(instance, SUBLAYERS)
    for layer in range(instance.sizes["num_layers"]):
        reading = f"layers.{layer}.cross_attention"
        instance.write({**own, **silent(instance, *(name for name in every if name != reading))})
        label = f"output, cross-attention of layer {layer} alone,"
        check_close(label, instance(x, memory), instance.expected(x, memory), decoder.tolerance(4))


@clause("DEC-FINAL-NORM")
def test_past_silent_layers_there_is_the_last_norm_alone(decoder: Subject, draw: Draw) -> None:
    instance = build(decoder, num_layers=2).randomize(draw)
    instance.write(silent(instance, *layers_of(instance, SUBLAYERS)))
    x, memory = inputs(instance, draw, 2, 5, 7, scale=3.0)
    check_close("output", instance(x, memory), instance.expected(x, memory), decoder.tolerance(2))


@clause("DEC-STACK-DROPOUT")
def test_a_dropout_rate_that_is_accepted_reaches_the_layers(decoder: Subject, draw: Draw) -> None:
    instance, plain = (build(decoder, num_layers=2, dropout=rate).randomize(draw) for rate in (0.5, 0.0))
    check_rate_used(instance, plain, inputs(instance, draw, 2, 5, 6))


@clause("DEC-STACK")
def test_the_stack_is_that_of_the_definition(decoder: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        instance = build(decoder, num_layers=layers).randomize(draw)
        under(f"num_layers = {instance.sizes['num_layers']}")
        check_defined(instance, draw, *inputs(instance, draw, 2, 5, 7), depth=3 * layers + 1)


def check_defined(instance: Instance, draw: Draw, x: Array, memory: Array, *, depth: int) -> None:
    """Compare with the definition, without masks and with both."""
    tolerance = instance.subject.tolerance(depth)
    check_close("output", instance(x, memory), instance.expected(x, memory), tolerance)
    if instance.subject.offers("masks"):
        real = np.arange(x.shape[1])[None] < x.shape[1] - np.arange(len(x))[:, None]
        real[:, 0] = True
        masks = causal(x, real), keys_mask(draw.mask(*memory.shape[:2]))
        got, want = instance(x, memory, *masks), instance.expected(x, memory, *masks)
        check_close("output, with both masks,", got, want, tolerance)


@clause("DEC-SIZES")
def test_the_output_equals_the_definition_at_every_size(decoder_layer: Subject, draw: Draw) -> None:
    check_definition_at_sizes(
        decoder_layer,
        draw,
        after="DEC-ORACLE",
        depth=3,
        coverage="some bands and marks",
        padded=with_hidden_target_and_memory,
    )


@clause("DEC-STACK-SIZES")
def test_the_stack_equals_the_definition_at_every_size(decoder: Subject, draw: Draw) -> None:
    check_definition_at_sizes(
        decoder, draw, after="DEC-STACK", depth=4, coverage="some bands and marks", padded=with_hidden_target_and_memory
    )


@clause("DEC-STACK-GRAD-SIZES")
def test_gradients_are_right_at_every_size(decoder: Subject, draw: Draw) -> None:
    check_gradients_at_sizes(decoder, draw, after="DEC-STACK")
