"""Clauses of spec/self_attention.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_finite,
    check_shape,
    check_zero,
    each_of,
    under,
)
from conformkit.conformance.draws import Draw
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Instance, Subject
from conformkit.fixtures import Golden
from conformkit.spec.layers import linear
from conformkit.spec.masks import causal_mask

Array = npt.NDArray[Any]


# --- construction -----------------------------------------------------------------------------------------------------


@clause("SA-SHAPE")
def test_the_output_is_as_wide_as_a_value(self_attention: Subject, draw: Draw) -> None:
    for widths in each_of([{"d_k": 3, "d_v": 5}, {"d_k": 3}, {"d_v": 5}, {}]):
        instance = _built(self_attention, **widths)
        length, width = self_attention.tokens(7), instance.sizes["d_model"]
        out = instance(draw.values(2, length, width))
        check_shape("output", out, (2, length, instance.sizes.get("d_v") or width))
        check_finite("output", out)


@clause("SA-PARAM-COUNT")
def test_the_parameters_are_exactly_the_three_projections(self_attention: Subject) -> None:
    for widths in each_of([{"d_k": 3, "d_v": 5}, {}]):
        instance = self_attention.build(**widths)
        want = sum(int(np.prod(parameter.shape)) for parameter in instance.canonical.values())
        theirs = [f"{p['name']} {tuple(p['shape'])}" for p in instance.trainable]
        ours = [f"{name} {parameter.shape}" for name, parameter in instance.canonical.items()]
        check(
            f"{instance.count()} trainable numbers are the definition's {want}", instance.count() == want,
            f"yours: {', '.join(theirs) or 'none'}", f"the definition's: {', '.join(ours)}",
        )  # fmt: skip
    self_attention.bound.require_weights()


@clause("SA-NO-BIAS")
def test_an_input_of_zeros_gives_zeros(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build().scatter(draw)
    check_zero("output for x = 0", instance(np.zeros((2, self_attention.tokens(5), instance.sizes["d_model"]))))


# --- who sees whom ----------------------------------------------------------------------------------------------------


@clause("SA-CAUSAL-DEFAULT")
def test_by_default_no_position_sees_a_later_one(self_attention: Subject, draw: Draw) -> None:
    for how, instance in {"causal=True": self_attention.build(causal=True), "causal left out": _built(self_attention)}.items():
        under(how)
        influence = _influence(instance.scatter(draw), draw)
        check_zero("gradient of output t in input j > t", np.triu(influence, 1))


@clause("SA-CAUSAL-REACH")
def test_a_causal_position_sees_itself_and_everything_before(self_attention: Subject, draw: Draw) -> None:
    influence = _influence(self_attention.build(causal=True).scatter(draw), draw)
    _check_sees(influence, causal_mask(len(influence)))


@clause("SA-CAUSAL-OFF")
def test_with_causal_off_every_position_sees_every_other(self_attention: Subject, draw: Draw) -> None:
    influence = _influence(self_attention.build(causal=False).scatter(draw), draw)
    _check_sees(influence, np.ones_like(influence, np.bool_))


@clause("SA-PREFIX")
def test_the_outputs_of_a_prefix_are_the_prefix_of_the_outputs(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build(causal=True).scatter(draw)
    length = self_attention.tokens(7)
    x = draw.values(2, length, instance.sizes["d_model"])
    full = instance(x)
    for prefix in each_of([n for n in (1, 4) if n < length]):
        check_close("output", instance(x[:, :prefix]), full[:, :prefix], self_attention.tolerance())


@clause("SA-PERM-EQUIV")
def test_without_causality_permuting_positions_permutes_outputs(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build(causal=False).scatter(draw)
    length = self_attention.tokens(7)
    x, order = draw.values(2, length, instance.sizes["d_model"]), draw.permutation(length)
    check_close("output", instance(x[:, order]), instance(x)[:, order], self_attention.tolerance())


@clause("SA-BATCH-INDEP")
def test_batch_elements_do_not_influence_one_another(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build().scatter(draw)
    for batch, length in each_of([(5, self_attention.tokens(3)), (4, self_attention.tokens(4))]):
        x = draw.values(batch, length, instance.sizes["d_model"])
        before = instance(x)
        x[1] = draw.values(*x.shape[1:], scale=5.0)
        after, rest = instance(x), [b for b in range(batch) if b != 1]
        check_close("outputs of the other elements", after[rest], before[rest], self_attention.tolerance())
        check_differs("output of the changed element", after[1], before[1], at_least=1e-4)


# --- numbers ----------------------------------------------------------------------------------------------------------


@clause("SA-SCALE-DK")
def test_scores_are_divided_by_the_root_of_the_key_width(self_attention: Subject, draw: Draw) -> None:
    for widths in ({"d_model": 16, "d_k": 4, "d_v": 6}, {"d_model": 12, "d_k": 20, "d_v": 5}):
        instance = self_attention.build(**widths).randomize(draw)
        under(f"d_model = {instance.sizes['d_model']}, d_k = {instance.sizes['d_k']}")
        x = _two_rows(instance, draw)
        q, k, v = (linear(instance.weights, name, x) for name in "qkv")
        got = _divisor(instance(x)[0, 1], v[0], float(q[0, 1] @ (k[0, 1] - k[0, 0])))
        check_close("the number that scores are divided by", got, np.sqrt(q.shape[-1]), self_attention.tolerance(20))


@clause("SA-FIRST-POS")
def test_the_first_causal_position_returns_its_own_value(self_attention: Subject, draw: Draw) -> None:
    for widths in each_of([{"d_k": 3, "d_v": 5}, {}]):
        instance = self_attention.build(causal=True, **widths).randomize(draw)
        x = draw.values(3, self_attention.tokens(5), instance.sizes["d_model"])
        want = linear(instance.weights, "v", x[:, :1])
        check_close("output 0", instance(x)[:, :1], want, self_attention.tolerance())


@clause("SA-ZERO-WQ")
def test_with_no_queries_outputs_are_means_of_values(self_attention: Subject, draw: Draw) -> None:
    for causal in each_of([True, False]):
        instance = self_attention.build(causal=causal, d_k=3, d_v=5).randomize(draw)
        instance.write({name: 0.0 * array for name, array in instance.weights.items() if name.startswith("q.")})
        x = draw.values(2, self_attention.tokens(6), instance.sizes["d_model"])
        values = linear(instance.weights, "v", x)
        mean = np.repeat(values.mean(axis=1, keepdims=True), x.shape[1], axis=1)
        running = np.cumsum(values, axis=1) / np.arange(1, x.shape[1] + 1)[:, None]
        want = running if instance.sizes["causal"] else mean
        check_close("output", instance(x), want, self_attention.tolerance())


@clause("SA-IDENT-PROJ")
def test_identity_projections_give_the_worked_example(
    self_attention: Subject, goldens: Callable[[str], list[Golden]]
) -> None:
    fitting = [g for g in goldens("SA-IDENT-PROJ") if self_attention.sizes(**g.sizes) == dict(g.sizes)]
    if not fitting:
        raise NotApplicable("its declared limits exclude the example's sizes")
    for golden in fitting:
        under(golden.title)
        instance = self_attention.construct(golden.sizes)
        biases = {name: np.zeros(p.shape) for name, p in instance.canonical.items() if name.endswith("bias")}
        instance.write(biases | dict(golden.weights))
        check_close("output", instance(golden.inputs["x"]), golden.expected, self_attention.tolerance())


@clause("SA-GRAD-ALL")
def test_all_three_projections_receive_gradient(self_attention: Subject, draw: Draw) -> None:
    instance = self_attention.build().scatter(draw)
    x = draw.values(2, self_attention.tokens(5), instance.sizes["d_model"])
    gradients = instance.vjp(x, cotangent=draw.values(*instance(x).shape)).parameters
    reached = {name: gradient for name, gradient in gradients.items() if gradient is not None}
    check("every parameter is reached by a gradient", len(reached) == len(gradients), _without(gradients))
    for name, gradient in self_attention.bound.to_canonical(reached, instance.sizes).items():
        if name.endswith("weight"):
            check(f"the gradient of {name} is not 0", bool(np.abs(gradient).max() > 1e-9))


@clause("SA-ORACLE")
def test_the_output_equals_the_definition(self_attention: Subject, draw: Draw) -> None:
    for sizes in each_of(
        [
            {"d_model": 12, "d_k": 3, "d_v": 5, "causal": True},
            {"d_model": 7, "causal": False},
            {"d_model": 6, "d_k": 9, "d_v": 1, "causal": False},
            {"d_model": 8, "causal": True},
        ]
    ):
        instance = self_attention.build(**sizes).randomize(draw)
        x = draw.values(3, self_attention.tokens(5), instance.sizes["d_model"])
        check_close("output", instance(x), instance.expected(x), self_attention.tolerance())


# --- how the above is measured ----------------------------------------------------------------------------------------


def _built(subject: Subject, **widths: int) -> Instance:
    """Construct with nothing but these and d_model, where the constructor has the contract's other defaults."""
    sizes = subject.sizes(**widths)
    if subject.bound.config.construct is None and subject.bound.causal in {"construct", "always"}:
        sizes = {name: value for name, value in sizes.items() if name in {"d_model", *widths}}
    return subject.construct(sizes)


def _influence(instance: Instance, draw: Draw) -> Array:
    """Return by how much output t (row) depends on input j (column): the largest gradient, (T, T).

    Element t of a batch of equal sequences is asked for output t.
    """
    length = instance.subject.tokens(5)
    x = np.repeat(draw.values(1, length, instance.sizes["d_model"]), length, axis=0)
    cotangent = draw.values(*instance(x).shape) * np.eye(length)[..., None]
    gradient = instance.vjp(x, cotangent=cotangent, parameters=False).inputs["x"]
    check("the output hangs on x by a gradient", gradient is not None)
    assert gradient is not None
    check_finite("gradient of x", gradient)
    return np.asarray(np.abs(gradient).max(axis=-1))


def _check_sees(influence: Array, allowed: Array) -> None:
    blind = np.argwhere(allowed & (influence == 0.0))
    told = ", ".join(f"{t} of {j}" for t, j in blind[:4])
    check("every output depends on every input that it may see", not len(blind), f"no gradient: output {told}")


def _two_rows(instance: Instance, draw: Draw) -> Array:
    """Return two positions whose scores, seen from the second, differ neither too little nor too much to be measured."""
    for _ in range(200):
        x = draw.values(1, 2, instance.sizes["d_model"])
        q, k = (linear(instance.weights, name, x) for name in "qk")
        apart = float(q[0, 1] @ (k[0, 1] - k[0, 0])) / np.sqrt(q.shape[-1])
        if 0.7 < abs(apart) < 1.5:
            return x
    raise NotApplicable("no two positions with telling scores were found")


def _divisor(out: Array, values: Array, apart: float) -> Array:
    """Return what a difference of two scores was divided by, given the mean of two values that came of it."""
    direction = values[1] - values[0]
    share = float((out - values[0]) @ direction / (direction @ direction))
    check("the output is a mean of the two values", 0.0 < share < 1.0, f"it gives the second one a weight of {share:.3g}")
    return np.asarray(apart / np.log(share / (1.0 - share)))


def _without(gradients: Mapping[str, Array | None]) -> str:
    return "no gradient reaches " + ", ".join(name for name, gradient in gradients.items() if gradient is None)
