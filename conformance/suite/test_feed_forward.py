"""Clauses of spec/feed_forward.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    NotYet,
    check,
    check_close,
    check_differs,
    check_finite,
    check_repeated,
    check_shape,
    check_zero,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.averages import check_mean_over_dropout, drops_what_units_read
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.influence import check_all_reached
from conformkit.conformance.evidence.neutral_weights import expert_share, halving, zeros
from conformkit.conformance.evidence.stored_values import check_goldens
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.feed_forward import gated
from conformkit.spec.layers import activate

Goldens = Callable[[str], list[Golden]]


def build(feed_forward: Subject, width: int, hidden: int, **options: Any) -> Instance:
    instance = feed_forward.build(d_model=width, d_ff=hidden, **options)
    under(f"d_model = {instance.sizes['d_model']}, d_ff = {instance.sizes['d_ff']}")
    return instance


def inputs(instance: Instance, draw: Draw, batch: int, tokens: int, scale: float = 1.0) -> Array:
    return draw.values(batch, instance.subject.tokens(tokens), instance.sizes["d_model"], scale=scale)


def networks(instance: Instance) -> int:
    """Return how many there are: 1, or all experts and the shared one."""
    variant = instance.subject.variant
    return variant.experts + variant.shared_expert if variant.experts else 1


def matrix_numbers(instance: Instance) -> int:
    """Return the numbers in all matrices, a router's among them."""
    width, variant = instance.sizes["d_model"], instance.subject.variant
    each = (3 if variant.gated else 2) * int(width * instance.sizes["d_ff"])
    return networks(instance) * each + variant.experts * (int(width) + variant.router_bias)


@clause("FFN-SHAPE")
def test_any_batch_and_any_number_of_positions_keep_their_shape(feed_forward: Subject, draw: Draw) -> None:
    for width, hidden in ((12, 20), (7, 5)):
        instance = build(feed_forward, width, hidden)
        for batch, tokens in ((2, 5), (1, 1), (3, 4)):
            x = inputs(instance, draw, batch, tokens)
            check_shape("output", y := instance(x), x.shape)
            check_finite("output", y)


@clause("FFN-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(feed_forward: Subject) -> None:
    for width, hidden in ((12, 20), (8, 24), (7, 5)):
        check_count(build(feed_forward, width, hidden))
    feed_forward.bound.require_weights()


@clause("FFN-HIDDEN")
def test_the_matrices_are_as_wide_as_asked(feed_forward: Subject) -> None:
    for width, hidden in ((8, 24), (8, 5), (12, 20)):
        instance = build(feed_forward, width, hidden)
        d, f, got = instance.sizes["d_model"], instance.sizes["d_ff"], instance.count()
        want = matrix_numbers(instance)
        biases = {0, f, d, f + d, 2 * f, 2 * f + d}
        check(
            f"it has {got} trainable numbers, matrices of hidden width {f} have {want}",
            got - want in {networks(instance) * each for each in biases},
        )


@clause("FFN-BIAS")
def test_there_is_a_bias_for_each_map_or_none(feed_forward: Subject, draw: Draw) -> None:
    variant = feed_forward.variant
    instance = build(feed_forward, 12, 20).scatter(draw)
    d, f = instance.sizes["d_model"], instance.sizes["d_ff"]
    want = networks(instance) * (f * (2 if variant.gated else 1) + d) if variant.ffn_bias else 0
    got = instance.count() - matrix_numbers(instance)
    check(f"it has {got} numbers besides its matrices, expected {want}", got == want)
    nothing = np.zeros_like(inputs(instance, draw, 2, 3))
    if variant.ffn_bias:
        check_differs("the output for x = 0, compared with 0,", instance(nothing), nothing)
    else:
        check_zero("the output for x = 0", instance(nothing))


@clause("FFN-POSITIONWISE")
def test_a_changed_position_changes_its_own_output_only(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).scatter(draw)
    x = inputs(instance, draw, 1, 5)
    length = x.shape[1]
    each = np.arange(length)
    changed = np.repeat(x, length, axis=0)  # copy t is changed at position t
    changed[each, each] = draw.values(length, x.shape[2], scale=3.0)
    before, after = instance(x), instance(changed)
    check_differs("the output at the changed positions", after[each, each], before[0])
    kept = np.where(np.eye(length, dtype=np.bool_)[..., None], before, after)
    check_close("the output elsewhere", kept, np.repeat(before, length, axis=0), feed_forward.tolerance())


@clause("FFN-SHARED")
def test_permuted_positions_give_permuted_outputs(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).scatter(draw)
    x = inputs(instance, draw, 3, 5)
    y = instance(x)
    check_differs("the output at another position", y[:, :1], y[:, -1:] if x.shape[1] > 1 else y[::-1, :1])
    positions, sequences = draw.permutation(x.shape[1]), draw.permutation(3)
    check_close("output, positions permuted", instance(x[:, positions]), y[:, positions], feed_forward.tolerance())
    check_close("output, sequences permuted", instance(x[sequences]), y[sequences], feed_forward.tolerance())
    same = np.broadcast_to(x[:1, :1], x.shape).copy()
    first = np.broadcast_to(y[:1, :1], x.shape)
    check_close("output for equal inputs", instance(same), first, feed_forward.tolerance())


@clause("FFN-NONCONTIG")
def test_views_with_gaps_give_the_same_result(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).scatter(draw)
    x = inputs(instance, draw, 2, 5)
    check_close("output for a strided input", instance(x, strided=True), instance(x), feed_forward.tolerance())


@clause("FFN-NONLINEAR")
def test_the_output_for_a_sum_is_not_the_sum_of_outputs(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).scatter(draw)
    a, b = inputs(instance, draw, 2, 5), inputs(instance, draw, 2, 5)
    together, apart = instance(a + b) + instance(np.zeros_like(a)), instance(a) + instance(b)
    check_differs("f(a + b) + f(0), compared with f(a) + f(b),", together, apart, at_least=1e-3)


@clause("FFN-ACT")
def test_single_hidden_units_show_the_declared_activation(feed_forward: Subject, draw: Draw, goldens: Goldens) -> None:
    instance = build(feed_forward, 12, 20)
    gated, experts = feed_forward.variant.gated, feed_forward.variant.experts
    spare = gated or bool(experts)  # then the last feature is 1, read by every unit of the other branch, or the router
    d, f = instance.sizes["d_model"], instance.sizes["d_ff"]
    units = np.arange(min(d - spare, f))
    if not units.size:
        raise NotApplicable.from_sizes("a network of width 1 has no feature to spare")
    weights = zeros(instance, "")
    weights["gate.weight" if gated else "up.weight"][..., units, units] = 1.0
    weights["down.weight"][..., units, units] = 1.0 / expert_share(feed_forward.variant)
    if gated:
        weights["up.weight"][..., -1] = 1.0 - feed_forward.variant.gate_offset
    instance.write(weights)
    limit = 0.9 * feed_forward.variant.gate_limit or np.inf  # GLIM-GATE is about what lies beyond
    for reach in dict.fromkeys(min(far, limit) for far in (3.0, 8.0, 100.0)):
        under(f"arguments from -{reach:g} to {reach:g}")
        x = inputs(instance, draw, 12, 3)
        x[..., units] = draw.uniform(*x[..., units].shape, low=-reach, high=reach)
        x[..., units[0]] = np.resize([0.0, 1.0, -1.0, 2.703125, -2.703125, reach, -reach], x.shape[:2])
        x[..., -1] = 1.0 if spare else x[..., -1]
        want = activate(x[..., units], feed_forward.variant)
        check_close(f"{feed_forward.variant.activation}(x)", instance(x)[..., units], want, feed_forward.tolerance())
    check_goldens(feed_forward, goldens("FFN-ACT"), required=False)


@clause("FFN-RELU-ZERO")
def test_negative_hidden_units_contribute_nothing(feed_forward: Subject, draw: Draw, goldens: Goldens) -> None:
    instance = build(feed_forward, 12, 20).randomize(draw)
    reader = "gate" if feed_forward.variant.gated else "up"
    negative = -np.abs(instance.weights[f"{reader}.weight"]) - 0.1
    instance.write({**zeros(instance, f"{reader}.bias"), f"{reader}.weight": negative})
    x = np.abs(inputs(instance, draw, 2, 5)) + 0.1
    constant = np.broadcast_to(instance.weights.get("down.bias", np.zeros(x.shape[-1])), x.shape)
    check_close("output, all units negative", instance(x), constant, feed_forward.tolerance(), scale=1.0)
    check_differs("output, all units positive,", instance(-x), constant)
    check_goldens(feed_forward, goldens("FFN-RELU-ZERO"), required=False)


@clause("FFN-SQUARED")
def test_twice_the_input_gives_four_times_the_output(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).randomize(draw)
    silent = (".bias", "router.weight")  # twice the input is no other choice of experts
    instance.write({name: 0.0 * value for name, value in instance.weights.items() if name.endswith(silent)})
    x = inputs(instance, draw, 2, 5)
    y, factor = instance(x), 8.0 if feed_forward.variant.gated else 4.0
    check_differs("output", y, np.zeros_like(y))
    check_close("output for 2x", instance(2.0 * x), factor * y, feed_forward.tolerance(2))


@clause("FFN-GATED")
def test_the_activation_is_on_the_gate_alone(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20)
    d, f = instance.sizes["d_model"], instance.sizes["d_ff"]
    units = np.arange(min(d, f))
    weights = zeros(instance, "")
    weights["gate.weight"][..., units, units] = 1.0
    weights["up.weight"][..., units, (units + 1) % d] = 1.0  # the neighbour
    weights["down.weight"][..., units, units] = 1.0 / expert_share(feed_forward.variant)
    x = inputs(instance, draw, 3, 5, scale=2.0)
    limit = feed_forward.variant.gate_limit or np.inf
    x = np.clip(x, -limit, limit)
    want = gated(x, np.roll(x, -1, axis=-1), feed_forward.variant)
    check_close("σ(x_i) · x_{i+1}", instance.write(weights)(x)[..., units], want[..., units], feed_forward.tolerance())


@clause("FFN-NO-RESIDUAL")
def test_with_a_silent_second_map_the_input_does_not_matter(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).randomize(draw)
    x, another = (inputs(instance, draw, 2, 5, scale=3.0) for _ in range(2))  # -x may give the same as x
    check_differs("the output for another input", instance(x), instance(another))
    experts = feed_forward.variant.experts  # whose biases differ, and which of them act depends on the input
    silent = zeros(instance, "")
    instance.write({n: a for n, a in silent.items() if "down." in n and (experts or n == "down.weight")})
    y, other = instance(x), instance(another)
    check_close("output, W₂ = 0, compared with that for another input", y, other, feed_forward.tolerance(), scale=1.0)


@clause("FFN-NO-OUTER-ACT")
def test_negating_or_doubling_the_second_map_does_so_to_the_output(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).randomize(draw)
    second = {name: value for name, value in instance.weights.items() if "down." in name}
    x = inputs(instance, draw, 2, 5)
    y = instance(x)
    for factor in (-1.0, 2.0):
        instance.write({name: factor * value for name, value in second.items()})
        check_close(f"output, W₂ and b₂ times {factor:g}", instance(x), factor * y, feed_forward.tolerance())


@clause("FFN-PLUSMINUS")
def test_pairs_of_opposite_units_halve_the_input(feed_forward: Subject, draw: Draw, goldens: Goldens) -> None:
    for width, hidden in ((8, 16), (5, 13)):
        instance = build(feed_forward, width, hidden)
        instance.write(halving(instance))
        x = inputs(instance, draw, 2, 5, scale=2.0)
        want = np.where(np.arange(x.shape[-1]) < instance.sizes["d_ff"] // 2, x / 2, 0.0)
        check_close("output", instance(x), want, feed_forward.tolerance())
    check_goldens(feed_forward, goldens("FFN-PLUSMINUS"), required=False)


@clause("FFN-DROPOUT-EVAL")
def test_evaluation_drops_nothing(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20, dropout=0.5).scatter(draw)
    plain = build(feed_forward, 12, 20, dropout=0.0)
    plain.write_raw(instance.read_raw())
    x = inputs(instance, draw, 2, 5)
    y = instance(x, seed=1)
    check_repeated("output in a second call", instance(x, seed=2), y)
    check_close("output, compared with that of dropout 0,", y, plain(x), feed_forward.tolerance())


@clause("FFN-DROPOUT-MEAN")
def test_on_average_dropout_changes_nothing(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20, dropout=0.25).scatter(draw)
    x = inputs(instance, draw, 1, 4)

    def linear() -> tuple[Instance, Array]:
        return instance.write(halving(instance)), x

    def in_front() -> bool:
        return drops_what_units_read(build(feed_forward, 12, 20, dropout=0.25), draw)

    check_mean_over_dropout(instance, x, in_front, linear)


@clause("FFN-GRAD-ALL")
def test_every_parameter_has_a_gradient(feed_forward: Subject, draw: Draw) -> None:
    instance = build(feed_forward, 12, 20).scatter(draw)
    try:
        check_all_reached(instance, draw)
    except ClauseFailure as failure:
        if feed_forward.variant.experts and _reaches_some(instance, draw):
            raise NotYet("MOE-ROUTER-LEARNS", failure) from None
        raise


def _reaches_some(instance: Instance, draw: Draw) -> bool:
    x = inputs(instance, draw, 2, 5)
    gradients = instance.vjp(x, cotangent=draw.values(*instance(x).shape)).parameters
    return any(gradient is not None for gradient in gradients.values())


@clause("FFN-ORACLE")
def test_the_output_is_that_of_the_definition(feed_forward: Subject, draw: Draw) -> None:
    for width, hidden in ((12, 20), (7, 5), (4, 32), (66, 130)):
        instance = build(feed_forward, width, hidden).randomize(draw)
        for batch, tokens, scale in ((3, 5, 1.5), (1, 1, 1.5), (1, 67, feed_forward.up_to(300.0, power=2))):
            x = inputs(instance, draw, batch, tokens, scale=scale)
            check_close("output", instance(x), instance.expected(x), feed_forward.tolerance())


@clause("FFN-SIZES")
def test_the_output_equals_the_definition_at_every_size(feed_forward: Subject, draw: Draw) -> None:
    check_definition_at_sizes(feed_forward, draw, after="FFN-ORACLE")
