"""Clauses of spec/block.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    Kind,
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_finite,
    check_hidden,
    check_repeated,
    check_shape,
    check_zero,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.averages import (
    check_mean_over_dropout,
    drops_what_scores_read,
    drops_what_units_read,
)
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.for_each_component import without_causal
from conformkit.conformance.evidence.influence import check_all_reached, influence
from conformkit.conformance.evidence.neutral_weights import (
    NormWindow,
    halving,
    silent_attention,
    silent_feed_forward,
    zeros,
)
from conformkit.conformance.evidence.stored_values import check_goldens
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.masks import causal_mask

Goldens = Callable[[str], list[Golden]]


def told(instance: Instance) -> str:
    """Return the sizes of a block, for messages."""
    return ", ".join(f"{name} = {instance.sizes[name]}" for name in ("d_model", "num_heads", "d_ff", "causal"))


def build(block: Subject, width: int = 12, heads: int = 3, hidden: int = 20, **options: Any) -> Instance:
    instance = block.build(d_model=width, num_heads=heads, d_ff=hidden, **options)
    under(told(instance))
    return instance


def inputs(instance: Instance, draw: Draw, batch: int, tokens: int, scale: float = 1.0) -> Array:
    return draw.values(batch, instance.subject.tokens(tokens), instance.sizes["d_model"], scale=scale)


def wired(block: Subject, draw: Draw) -> tuple[Instance, Array]:
    """Return a block with a feed-forward network that halves what it reads, and sequences of one position.

    There attention is linear and the activation cancels, so that only the arrangement of the parts matters.
    """
    instance = build(block, 8, 2, 20).randomize(draw)
    return instance.write(halving(instance, "feed_forward.")), inputs(instance, draw, 6, 1, scale=2.0)


def with_silent(instance: Instance, x: Array, *, attention: bool = False, network: bool = False) -> Array:
    """Return the output for x with a sublayer silenced, and restore its weights."""
    own = instance.weights
    silent = (silent_attention(instance) if attention else {}) | (silent_feed_forward(instance) if network else {})
    y = instance.write(silent)(x)
    instance.write(own)
    return y


def _alike(one: Array, other: Array) -> float:
    """Return the cosine similarity of rows, at most 1."""
    lengths = np.linalg.norm(one, axis=-1) * np.linalg.norm(other, axis=-1)
    return float((np.abs((one * other).sum(axis=-1)) / np.maximum(lengths, 1e-30)).mean())


def several(instance: Instance, draw: Draw, batch: int, tokens: int) -> Array:
    """Return an input of at least two positions."""
    x = inputs(instance, draw, batch, tokens)
    if x.shape[1] < 2:
        raise NotApplicable.from_sizes("the declared limits leave sequences of one position")
    return x


@clause("BLOCK-SHAPE")
def test_any_batch_and_any_number_of_positions_keep_their_shape(block: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        instance = build(block, width, heads, hidden)
        for batch, tokens in ((2, 5), (1, 1), (3, 4)):
            x = inputs(instance, draw, batch, tokens)
            check_shape("output", y := instance(x), x.shape)
            check_finite("output", y)


@clause("BLOCK-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(block: Subject) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        instance = build(block, width, heads, hidden)
        check_count(instance)
    block.bound.require_weights()


@clause("BLOCK-RESIDUAL-FFN")
def test_past_a_silent_network_attention_still_shows(block: Subject, draw: Draw) -> None:
    instance = build(block).randomize(draw)
    x = inputs(instance, draw, 3, 5)
    attending = with_silent(instance, x, network=True)
    alone = with_silent(instance, x, attention=True, network=True)
    check_differs("the output for other attention weights, the network silenced,", attending, alone, at_least=1e-2)


@clause("BLOCK-RESIDUAL-ATTN")
def test_past_silent_attention_the_input_still_shows(block: Subject, draw: Draw) -> None:
    instance = build(block).randomize(draw)
    x = inputs(instance, draw, 3, 5)
    y, other = (with_silent(instance, z, attention=True, network=True) for z in (x, draw.values(*x.shape)))
    check_differs("the output for another input, both sublayers silenced,", y, other, at_least=1e-2)


@clause("BLOCK-ZERO-IDENTITY")
def test_silent_sublayers_leave_the_input(block: Subject, draw: Draw) -> None:
    instance = build(block).randomize(draw)
    begins = float(instance(inputs(instance, draw, 2, 5)).flat[0])  # where the silenced sublayers hide other mistakes
    under(f"{told(instance)}; with both sublayers the output begins with {begins:.6g}")
    instance.write({**silent_attention(instance), **silent_feed_forward(instance)})
    for scale in (3.0, block.up_to(1e6)):
        x = inputs(instance, draw, 2, 5, scale=scale)
        check_close("output", instance(x), x, block.tolerance())


@clause("BLOCK-GRAD-HIGHWAY")
def test_past_silent_sublayers_the_cotangent_comes_back(block: Subject, draw: Draw) -> None:
    instance = build(block).randomize(draw)
    instance.write({**silent_attention(instance), **silent_feed_forward(instance)})
    x = inputs(instance, draw, 2, 5)
    cotangent = draw.values(*x.shape)
    gradient = instance.vjp(x, cotangent=cotangent, parameters=False).inputs["x"]
    check("x receives no gradient", gradient is not None)
    check_close("the gradient of x", np.asarray(gradient), cotangent, block.tolerance())


@clause("BLOCK-PRELN-SHIFT")
def test_a_constant_added_to_all_features_comes_out_added(block: Subject, draw: Draw) -> None:
    instance = build(block).scatter(draw)
    x = inputs(instance, draw, 2, 5)
    shift = draw.uniform(2, x.shape[1], 1, low=1.0, high=4.0)  # another constant at each position
    check_close("f(x + c) - c", instance(x + shift) - shift, instance(x), block.tolerance(4), scale=10.0)


@clause("BLOCK-PRELN-ORDER")
def test_the_block_is_attention_half_then_network_half(block: Subject, draw: Draw) -> None:
    instance = build(block).randomize(draw)
    x = inputs(instance, draw, 3, 5, scale=1.0 if block.half else 10.0)
    scale = float(np.abs(7 * x).max()) if block.half else None  # that of what is subtracted
    first = with_silent(instance, x, network=True)
    second = with_silent(instance, first, attention=True)
    check_close("output, compared with its halves in turn,", instance(x), second, block.tolerance(2))
    added, unscaled = with_silent(instance, 7 * x, network=True) - 7 * x, first - x
    check_close("what attention adds to 7x", added, unscaled, 1e-3, scale=scale)  # ε changes it by 1e-7 at this spread
    added, unscaled = (with_silent(instance, z, attention=True) - z for z in (7 * x, x))
    check_close("what the network adds to 7x", added, unscaled, 1e-3, scale=scale)


@clause("BLOCK-POSTLN-ORDER")
def test_norms_come_after_the_sums(block: Subject, draw: Draw) -> None:
    instance, x = wired(block, draw)
    check_close("output", instance(x), instance.expected(x), block.tolerance(2))


@clause("BLOCK-POSTLN-NORMED")
def test_output_rows_have_mean_0_and_variance_1(block: Subject, draw: Draw) -> None:
    instance = build(block).randomize(draw)
    width = instance.sizes["d_model"]
    own = {"norm2.weight": np.full(width, block.variant.plain_gamma), "norm2.bias": np.zeros(width)}
    instance.write({name: value for name, value in own.items() if name in instance.canonical})
    y = instance(inputs(instance, draw, 2, 5, scale=3.0))
    divisor = width - (block.variant.norm_deviation == "sample")
    check_zero("the mean of each row", y.mean(axis=-1), at_most=block.no_finer(1e-5))
    variance = (y**2).sum(axis=-1) / divisor
    check_close("the variance of each row", variance, np.ones_like(variance), 1e-3)  # eps takes 1e-5 of a variance of 1


@clause("BLOCK-SEQUENTIAL")
def test_what_the_network_adds_depends_on_attention(block: Subject, draw: Draw) -> None:
    instance = build(block).randomize(draw)
    x = inputs(instance, draw, 3, 5)
    behind = instance(x) - with_silent(instance, x, network=True)
    alone = with_silent(instance, x, attention=True) - with_silent(instance, x, attention=True, network=True)
    # parallel sublayers leave it as it is but for roundings; a gated network of small weights changes by little
    check_differs("what the network adds, attention silent,", alone, behind, at_least=1e-2 if block.half else 1e-4)


@clause("BLOCK-NORM-KIND")
def test_a_mean_is_removed_by_layernorm_alone(block: Subject, draw: Draw) -> None:
    window = NormWindow(block, draw)
    seen = window(draw.values(4, window.width), offset=5.0)
    own, other = ("layernorm", "rmsnorm") if block.variant.norm == "layernorm" else ("rmsnorm", "layernorm")
    alike = {kind: _alike(seen.given, window.expected(seen, kind)) for kind in (own, other)}
    sentence = f"the norm's output has cosine {alike[own]:.3g} with the declared {own}, {alike[other]:.3g} with {other}"
    check(sentence, alike[own] >= alike[other])


@clause("BLOCK-NORMS-DISTINCT")
def test_each_sublayer_has_its_own_norm(block: Subject, draw: Draw) -> None:
    instance = build(block, 8, 2, 20)
    sizes = {name: math.prod(p.shape) for name, p in instance.canonical.items()}
    lacking = sum(sizes.values()) - instance.count()
    one = sum(size for name, size in sizes.items() if name.startswith("norm1."))
    check(f"{lacking} trainable numbers are missing, as many as one norm has", lacking != one)
    if block.bound.rules is None:
        raise NotApplicable("its weights could not be bound; see BLOCK-PARAM-COUNT")
    x = inputs(instance.randomize(draw), draw, 3, 5)
    whole, own = instance(x), instance.weights
    for name, silent in (("norm1", {"attention": True}), ("norm2", {"network": True})):
        without = with_silent(instance, x, **silent)
        instance.write({n: draw.values(*value.shape) for n, value in own.items() if n.startswith(f"{name}.")})
        check_differs(f"the output for another {name}", instance(x), whole, at_least=1e-2)
        if block.variant.placement in {"pre", "parallel_two_norms"}:  # after the sum, either norm acts on everything
            changed = with_silent(instance, x, **silent)
            check_close(f"the output for another {name}, its sublayer silenced,", changed, without, block.tolerance())
        instance.write(own)


@clause("BLOCK-CAUSAL")
def test_a_later_position_leaves_earlier_outputs_unchanged(block: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (8, 1)):
        instance = build(block, width, heads, causal=True).scatter(draw)
        x = several(instance, draw, 1, 6)
        moved = changes(instance, draw, x)
        label, allowed = "the change of output t when x changes at j > t", causal_mask(x.shape[1])
        check_hidden(label, moved.T, allowed, at_most=10 * block.tolerance())
        seen = moved[-block.variant.window :, -1]  # -0: all
        if not block.half:  # a small change may be lost in rounding there
            check(
                "the last output does not depend on every x before it", bool((seen > 1e-6).all()), kind=Kind.NO_EFFECT
            )
    if block.offers("gradients"):
        each = np.arange(x.shape[1])
        cotangent = np.zeros((len(each), *x.shape[1:]))
        cotangent[each, each] = draw.values(*x[0].shape)  # copy t is differentiated at output t
        gradient = instance.vjp(np.repeat(x, len(each), axis=0), cotangent=cotangent, parameters=False).inputs["x"]
        check("x receives no gradient", gradient is not None)
        later = each[None, :] > each[:, None]
        check_zero("the derivative of output t with respect to x at j > t", np.asarray(gradient) * later[..., None])


@clause("BLOCK-CAUSAL-DEFAULT")
def test_causality_is_on_unless_it_is_switched_off(block: Subject, draw: Draw) -> None:
    instance = without_causal(block).scatter(draw)
    dependence = influence(instance, draw)
    label = "the derivative of output t with respect to x at j > t"
    check_hidden(label, dependence, causal_mask(len(dependence)))


def changes(instance: Instance, draw: Draw, x: Array) -> Array:
    """Return how much each output t changes when x (1, T, D) changes at j, as (j, t)."""
    each = np.arange(x.shape[1])
    changed = np.repeat(x, len(each), axis=0)
    changed[each, each] += 3.0 * draw.values(*x[0].shape)
    return np.asarray(np.abs(instance(changed) - instance(x)).max(axis=-1))


@clause("BLOCK-PREFIX")
def test_a_prefix_gives_the_same_outputs(block: Subject, draw: Draw) -> None:
    instance = build(block, causal=True).scatter(draw)
    for longest, prefixes in ((7, (1, 4, 6)), (70, (5, 33, 66))):
        x = several(instance, draw, 2, longest)
        whole = instance(x)
        for tokens in prefixes:
            part = instance(x[:, : block.tokens(tokens)])
            label = f"output for the first {part.shape[1]} of {x.shape[1]} positions"
            check_close(label, part, whole[:, : part.shape[1]], block.tolerance(2))


@clause("BLOCK-CAUSAL-OFF")
def test_every_position_moves_every_output(block: Subject, draw: Draw) -> None:
    instance = build(block, causal=False).scatter(draw)
    x = several(instance, draw, 1, 5)
    moved = changes(instance, draw, x)
    position, output = np.unravel_index(int(moved.argmin()), moved.shape)
    check(f"output {output} does not depend on x at {position}", bool((moved > 1e-6).all()), kind=Kind.NO_EFFECT)


@clause("BLOCK-PERM-EQUIV")
def test_permuted_positions_give_permuted_outputs(block: Subject, draw: Draw) -> None:
    instance = build(block, causal=False).scatter(draw)
    x = several(instance, draw, 2, 6)
    order = draw.permutation(x.shape[1])
    y = instance(x)
    check_differs("the output at another position", y[:, 0], y[:, 1])
    check_close("output, positions permuted", instance(x[:, order]), y[:, order], block.tolerance(2))


@clause("BLOCK-NONCONTIG")
def test_views_with_gaps_give_the_same_result(block: Subject, draw: Draw) -> None:
    instance = build(block).scatter(draw)
    x = inputs(instance, draw, 2, 5)
    check_close("output for a strided input", instance(x, strided=True), instance(x), block.tolerance(2))


@clause("BLOCK-BATCH-INDEP")
def test_a_sequence_gives_the_same_output_in_any_batch(block: Subject, draw: Draw) -> None:
    instance = build(block).scatter(draw)
    x = inputs(instance, draw, 3, 3)
    together = instance(x)
    check_differs("the output for another sequence", together[0], together[1])
    for sequence in range(3):
        alone = instance(x[sequence : sequence + 1])[0]
        check_close(f"output of sequence {sequence} alone", alone, together[sequence], block.tolerance(2))
    x[1] *= 5.0
    check_close("output of sequence 0 batched with another", instance(x)[0], together[0], block.tolerance(2))


@clause("BLOCK-DROPOUT-EVAL")
def test_evaluation_drops_nothing(block: Subject, draw: Draw) -> None:
    instance = build(block, dropout=0.5).scatter(draw)
    plain = build(block, dropout=0.0)
    plain.write_raw(instance.read_raw())
    x = inputs(instance, draw, 2, 5)
    y = instance(x, seed=1)
    check_repeated("output in a second call", instance(x, seed=2), y)
    check_close("output, compared with that of dropout 0,", y, plain(x), block.tolerance(2))


@clause("BLOCK-DROPOUT-TRAIN")
def test_training_varies_with_dropout_and_not_without(block: Subject, draw: Draw) -> None:
    instance = build(block, dropout=0.5).scatter(draw)
    x = inputs(instance, draw, 2, 5)
    first, second = (instance(x, mode="train", seed=seed) for seed in (1, 2))
    check_differs("output in training mode, dropout 0.5, another seed,", first, second)
    if block.bound.rules is not None:
        own = dict(instance.randomize(draw).weights)
        for name, silent in (("attention", silent_feed_forward), ("the network", silent_attention)):
            instance.write({**own, **silent(instance)})
            first, second = (instance(x, mode="train", seed=seed) for seed in (1, 2))
            check_differs(f"output in training mode, {name} alone, dropout 0.5, another seed,", first, second)
    plain = build(block, dropout=0.0).scatter(draw)
    check_close("output in training mode, dropout 0", plain(x, mode="train", seed=1), plain(x), block.tolerance(2))


@clause("BLOCK-DROPOUT-MEAN")
def test_on_average_dropout_changes_nothing_that_a_sublayer_gives(block: Subject, draw: Draw) -> None:
    instance = build(block, dropout=0.25).randomize(draw)
    own, x = dict(instance.weights), inputs(instance, draw, 1, 2)
    even = zeros(instance, "attention.q.") | zeros(instance, "attention.q_rotary.")
    half = halving(instance, "feed_forward.")
    for name, silent, weights, drops in (
        ("attention", silent_feed_forward, even, partial(drops_what_scores_read, part="attention.")),
        ("the network", silent_attention, half, partial(drops_what_units_read, part="feed_forward.")),
    ):
        under(f"{name} alone")
        alone = {**own, **silent(instance)}
        in_front = partial(_drops_in_front, block, draw, drops)
        linear = partial(_written, instance, {**alone, **weights}, x)
        check_mean_over_dropout(instance.write(alone), x, in_front, linear)


def _drops_in_front(block: Subject, draw: Draw, drops: Callable[[Instance, Draw], bool]) -> bool:
    """Whether single features of a sublayer's input are dropped, and none of the stream."""
    return not _drops_the_stream(block, draw) and drops(build(block, dropout=0.25), draw)


def _written(instance: Instance, weights: Mapping[str, Array], x: Array) -> tuple[Instance, Array]:
    return instance.write(weights), x


@clause("BLOCK-DROPOUT-RESIDUAL")
def test_training_leaves_the_residual_path_alone(block: Subject, draw: Draw) -> None:
    x, y = _through_silence(block, draw)
    check_close("output in training mode", y, x, block.tolerance())


def _through_silence(block: Subject, draw: Draw) -> tuple[Array, Array]:
    """Return an input, and what is left of it in training mode after two silent sublayers."""
    instance = build(block, dropout=0.5).randomize(draw)
    instance.write({**silent_attention(instance), **silent_feed_forward(instance)})
    x = inputs(instance, draw, 2, 5)
    return x, instance(x, mode="train", seed=1)


def _drops_the_stream(block: Subject, draw: Draw) -> bool:
    x, y = _through_silence(block, draw)
    return not np.allclose(x, y, atol=0.05)


@clause("BLOCK-GRAD-ALL")
def test_every_parameter_has_a_gradient(block: Subject, draw: Draw) -> None:
    instance = build(block).scatter(draw)
    check_all_reached(instance, draw)
    x = several(instance, draw, 2, 5)
    gradient = instance.vjp(x, cotangent=draw.values(*x.shape), parameters=False).inputs["x"]
    check("x receives no gradient", gradient is not None and bool(np.any(gradient)))


@clause("BLOCK-GOLDEN")
def test_the_stored_outputs_come_out(block: Subject, goldens: Goldens) -> None:
    check_goldens(block, goldens("BLOCK-GOLDEN"), tolerance=block.tolerance(2))


@clause("BLOCK-ORACLE")
def test_the_output_is_that_of_the_definition(block: Subject, draw: Draw) -> None:
    for width, heads, hidden, causal in ((12, 3, 20, True), (8, 1, 9, True), (8, 4, 20, False)):
        instance = build(block, width, heads, hidden, causal=causal).randomize(draw)
        for batch, tokens, scale in ((2, 6, 1.0), (2, 3, 0.003), (1, 1, 300.0), (1, 35, 1.0)):
            x = inputs(instance, draw, batch, tokens, scale=scale)
            check_close("output", instance(x), instance.expected(x), block.tolerance(2))


@clause("BLOCK-STACK-DISTINCT")
def test_each_layer_adds_the_parameters_of_a_block(model: Subject) -> None:
    instances = [model.build(num_layers=layers) for layers in (1, 2, 3)]
    layers = [instance.sizes["num_layers"] for instance in instances]
    if layers != [1, 2, 3]:
        raise NotApplicable.from_sizes("the declared limits fix the number of layers")
    sizes = [math.prod(p.shape) for name, p in instances[0].canonical.items() if name.startswith("blocks.0.")]
    for fewer, more in pairwise(instances):
        added = more.count() - fewer.count()
        check(f"one more layer adds {added} trainable numbers, a block has {sum(sizes)}", added == sum(sizes))


@clause("BLOCK-SIZES")
def test_the_output_equals_the_definition_at_every_size(block: Subject, draw: Draw) -> None:
    check_definition_at_sizes(block, draw, after="BLOCK-ORACLE", depth=2, coverage="some bands")
