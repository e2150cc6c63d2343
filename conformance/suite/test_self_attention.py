"""Clauses of spec/self_attention.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    check_close,
    check_differs,
    check_finite,
    check_hidden,
    check_shape,
    check_zero,
    each_of,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.influence import check_all_reached, check_sees, influence
from conformkit.conformance.evidence.scores import HeadProjection, divisor, telling_positions
from conformkit.conformance.evidence.stored_values import check_goldens
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.layers import Weights, linear
from conformkit.spec.masks import causal_mask

# --- construction -----------------------------------------------------------------------------------------------------


@clause("SA-SHAPE")
def test_the_output_is_as_wide_as_a_value(self_attention: Subject, draw: Draw) -> None:
    for widths in each_of("widths", [{"d_k": 3, "d_v": 5}, {"d_k": 3}, {"d_v": 5}, {}]):
        instance = _built(self_attention, **widths)
        length, width = self_attention.tokens(7), instance.sizes["d_model"]
        out = instance(draw.values(2, length, width))
        check_shape("output", out, (2, length, instance.sizes.get("d_v") or width))
        check_finite("output", out)


@clause("SA-PARAM-COUNT")
def test_the_parameters_are_exactly_the_three_projections(self_attention: Subject) -> None:
    for widths in each_of("widths", [{"d_k": 3, "d_v": 5}, {}]):
        check_count(self_attention.build(**widths))
    self_attention.bound.require_weights()


@clause("SA-NO-BIAS")
def test_an_input_of_zeros_gives_zeros(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build().scatter(draw)
    check_zero("output for x = 0", instance(np.zeros((2, self_attention.tokens(5), instance.sizes["d_model"]))))


# --- who sees whom ----------------------------------------------------------------------------------------------------


@clause("SA-CAUSAL-DEFAULT")
def test_by_default_no_position_sees_a_later_one(self_attention: Subject, draw: Draw) -> None:
    for how, instance in {
        "causal=True": self_attention.build(causal=True),
        "causal left out": _built(self_attention),
    }.items():
        under(how)
        dependence = influence(instance.scatter(draw), draw)
        check_hidden("gradient of output t in input j > t", dependence, causal_mask(len(dependence)))


@clause("SA-CAUSAL-REACH")
def test_a_causal_position_sees_itself_and_everything_before(self_attention: Subject, draw: Draw) -> None:
    dependence = influence(self_attention.build(causal=True).scatter(draw), draw)
    check_sees(dependence, causal_mask(len(dependence)))


@clause("SA-CAUSAL-OFF")
def test_with_causal_off_every_position_sees_every_other(self_attention: Subject, draw: Draw) -> None:
    dependence = influence(self_attention.build(causal=False).scatter(draw), draw)
    check_sees(dependence, np.ones_like(dependence, np.bool_))


@clause("SA-PREFIX")
def test_the_outputs_of_a_prefix_are_the_prefix_of_the_outputs(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build(causal=True).scatter(draw)
    for longest, prefixes in each_of("longest, prefixes", [(7, (2, 4)), (70, (5, 33, 66))]):
        x = draw.values(2, self_attention.tokens(longest), instance.sizes["d_model"])
        full = _out(instance, x)
        for prefix in [n for n in prefixes if n < x.shape[1]]:
            check_close("output", _out(instance, x[:, :prefix]), full[:, :prefix], self_attention.tolerance())
    under("the last position 700 times as large: its score is well above any other")
    x = draw.values(4, self_attention.tokens(7), instance.sizes["d_model"])
    x[:, -1] *= 700.0
    if x.shape[1] > 1:
        check_close("output", _out(instance, x)[:, :-1], _out(instance, x[:, :-1]), self_attention.tolerance())


@clause("SA-PERM-EQUIV")
def test_without_causality_permuting_positions_permutes_outputs(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build(causal=False).scatter(draw)
    length = self_attention.tokens(7)
    x, order = draw.values(2, length, instance.sizes["d_model"]), draw.permutation(length)
    check_close("output", _out(instance, x[:, order]), _out(instance, x)[:, order], self_attention.tolerance())


@clause("SA-NONCONTIG")
def test_views_with_gaps_give_the_same_result(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build().scatter(draw)
    x = draw.values(2, self_attention.tokens(5), instance.sizes["d_model"])
    check_close(
        "output for a strided input", _out(instance, x, strided=True), _out(instance, x), self_attention.tolerance()
    )


@clause("SA-BATCH-INDEP")
def test_batch_elements_do_not_influence_one_another(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build().scatter(draw)
    for batch, length in each_of("batch, length", [(5, self_attention.tokens(3)), (4, self_attention.tokens(4))]):
        x = draw.values(batch, length, instance.sizes["d_model"])
        before = _out(instance, x)
        x[1] = draw.values(*x.shape[1:], scale=5.0)
        after, rest = _out(instance, x), [b for b in range(batch) if b != 1]
        check_close("outputs of the other elements", after[rest], before[rest], self_attention.tolerance())
        check_differs("output of the changed element", after[1], before[1], at_least=1e-4)


# --- numbers ----------------------------------------------------------------------------------------------------------


@clause("SA-SCALE-DK")
def test_scores_are_divided_by_the_root_of_the_key_width(self_attention: Subject, draw: Draw) -> None:
    for width, d_k, d_v in ((16, 4, 6), (12, 20, 5)):
        instance = self_attention.build(d_model=width, d_k=d_k, d_v=d_v).randomize(draw)
        under(f"d_model = {instance.sizes['d_model']}, d_k = {instance.sizes['d_k']}")
        x, apart, values = telling_positions(draw, instance.sizes["d_model"], _projected(instance.weights))
        got = divisor(_out(instance, x)[0, 1], values, apart)
        check_close("the divisor of the scores", got, np.sqrt(instance.sizes["d_k"]), self_attention.tolerance(20))


@clause("SA-FIRST-POS")
def test_the_first_causal_position_returns_its_own_value(self_attention: Subject, draw: Draw) -> None:
    for widths in each_of("widths", [{"d_k": 3, "d_v": 5}, {}]):
        instance = self_attention.build(causal=True, **widths).randomize(draw)
        x = draw.values(3, self_attention.tokens(5), instance.sizes["d_model"])
        want = linear(instance.weights, "v", x[:, :1])
        check_close("output 0", _out(instance, x)[:, :1], want, self_attention.tolerance())


@clause("SA-ZERO-WQ")
def test_with_no_queries_outputs_are_means_of_values(self_attention: Subject, draw: Draw) -> None:
    for causal in each_of("causal", [True, False]):
        instance = self_attention.build(causal=causal, d_k=3, d_v=5).randomize(draw)
        instance.write({name: 0.0 * array for name, array in instance.weights.items() if name.startswith("q.")})
        x = draw.values(2, self_attention.tokens(6), instance.sizes["d_model"])
        values = linear(instance.weights, "v", x)
        mean = np.repeat(values.mean(axis=1, keepdims=True), x.shape[1], axis=1)
        running = np.cumsum(values, axis=1) / np.arange(1, x.shape[1] + 1)[:, None]
        want = running if instance.sizes["causal"] else mean
        check_close("output", _out(instance, x), want, self_attention.tolerance())


@clause("SA-IDENT-PROJ")
def test_identity_projections_give_the_worked_example(
    self_attention: Subject, goldens: Callable[[str], list[Golden]]
) -> None:
    check_goldens(self_attention, goldens("SA-IDENT-PROJ"))


@clause("SA-GRAD-ALL")
def test_all_three_projections_receive_gradient(self_attention: Subject, draw: Draw) -> None:
    check_all_reached(self_attention.build().scatter(draw), draw)


@clause("SA-ORACLE")
def test_the_output_equals_the_definition(self_attention: Subject, draw: Draw) -> None:
    chosen: list[dict[str, Any]] = [
        {"d_model": 12, "d_k": 3, "d_v": 5, "causal": True},
        {"d_model": 7, "causal": False},
        {"d_model": 6, "d_k": 9, "d_v": 1, "causal": False},
        {"d_model": 8, "causal": True},
    ]
    for sizes in chosen:
        instance = self_attention.build(**sizes).randomize(draw)
        for batch, length in ((3, 5), (1, 1), (1, 18), (1, 66)):
            under(f"{sizes}, batch {batch}, {length} positions")
            x = draw.values(batch, self_attention.tokens(length), instance.sizes["d_model"])
            check_close("output", _out(instance, x), instance.expected(x), self_attention.tolerance())


@clause("SA-SIZES")
def test_the_output_equals_the_definition_at_every_size(self_attention: Subject, draw: Draw) -> None:
    check_definition_at_sizes(self_attention, draw, after="SA-ORACLE")


# --- how the above is measured ----------------------------------------------------------------------------------------


def _built(subject: Subject, **widths: int) -> Instance:
    """Construct with nothing but these and d_model, where the constructor has the contract's other defaults."""
    sizes = subject.sizes(**widths)
    if subject.bound.config.construct is None and subject.bound.causal in {"construct", "always"}:
        sizes = {name: value for name, value in sizes.items() if name in {"d_model", *widths}}
    return subject.construct(sizes)


def _out(instance: Instance, x: Array, **options: Any) -> Array:
    """Return the output, its shape checked."""
    out = instance(x, **options)
    check_shape("output", out, (*x.shape[:2], instance.sizes["d_v"]))
    return out


def _projected(weights: Weights) -> HeadProjection:
    """Return how x becomes the queries, keys and values."""

    def projected(x: Array) -> tuple[Array, Array, Array]:
        q, k, v = (linear(weights, name, x)[0] for name in "qkv")
        return q, k, v

    return projected
