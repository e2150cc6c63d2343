"""Clauses of spec/gradients.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.checks import (
    Kind,
    NotApplicable,
    check,
    check_close,
    check_finite,
    check_zero,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.averages import drops_at_own_rate
from conformkit.conformance.evidence.differences import (
    Point,
    check_gradients,
    check_slope_in_half,
    compare,
    cotangent_for,
    differentiable,
    differentiate,
    directions,
    moved,
    slope_of_definition,
    wide_enough,
)
from conformkit.conformance.evidence.for_each_component import depth, each
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.rows_of_ids import single_rows
from conformkit.conformance.evidence.unchosen import with_unchosen
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.outcomes import Gradients
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.attention import softmax
from conformkit.spec.tolerances import GRADIENT, STEP, tolerance


@clause("GRAD-INPUT")
def test_gradient_reaches_every_position_of_every_input(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "gradients", without=("TinyTransformerLM",)):
        instance, inputs = subject.example(draw)
        found = differentiate(instance, inputs, cotangent_for(instance, inputs, draw))
        for name, gradient in found.inputs.items():
            _check_reached(f"{subject.name}: the gradient of {name}", gradient)


@clause("GRAD-ALL-PARAMS")
def test_gradient_reaches_every_parameter_on_which_the_output_depends(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "gradients", "parameters"):
        instance, inputs = subject.example(draw, batch=6)
        found = differentiate(instance, inputs, cotangent_for(instance, inputs, draw))
        check(f"{subject.name} has no parameters", bool(found.parameters))
        for listed in instance.trainable:
            silent = _zeros(listed["shape"], found.parameters[listed["name"]])
            if silent.any():
                _check_independent(Point.of(instance, inputs), listed["name"], silent, found.out, draw)


@clause("GRAD-NO-EXTRA")
def test_every_trainable_parameter_receives_a_gradient(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "gradients", "parameters"):
        instance, inputs = subject.example(draw)
        found = differentiate(instance, inputs, cotangent_for(instance, inputs, draw))
        read = {name for name, gradient in found.parameters.items() if gradient is not None}
        spared = {name for rows in single_rows(instance) if not read.isdisjoint(rows) for name in rows}
        unused = [name for name in found.parameters if name not in read | spared]
        check(f"{subject.name} never reads {', '.join(unused)}", not unused)


@clause("GRAD-CHECK")
def test_gradients_equal_central_differences(every: list[Subject], draw: Draw) -> None:
    for subject in each(wide_enough(every), "gradients"):
        how = {"step": STEP[subject.precision], "tolerance": GRADIENT[subject.precision]}
        instance, inputs = subject.example(draw)
        if inputs[0].dtype.kind == "i":
            inputs[0][:, -1] = inputs[0][:, 0]  # one row of the table is read twice
        check_gradients(subject.name, Point.of(instance, inputs), draw, **how)
        if len(inputs) > 1 and subject.offers("masks"):
            masked = (*inputs, draw.mask(inputs[0].shape[-2], inputs[1].shape[-2]))
            label = f"{subject.name} with a mask"
            check_gradients(label, Point.of(instance, masked), draw, **how)


@clause("GRAD-DEEP")
def test_gradients_equal_differences_in_deep_stacks_and_long_sequences(every: list[Subject], draw: Draw) -> None:
    exact = [subject for subject in every if subject.precision == "float64"]  # differences in float32 are too coarse
    for subject in each(exact, "gradients"):
        instance, inputs = subject.example(draw, batch=3, tokens=34, num_layers=4, block_size=36, max_len=36)
        how = {"step": STEP["float64"], "tolerance": GRADIENT["float64"]}
        check_gradients(subject.name, Point.of(instance, inputs), draw, **how)


@clause("GRAD-ORACLE")
def test_float32_gradients_equal_differences_of_the_definition(every: list[Subject], draw: Draw) -> None:
    narrow = [subject for subject in every if subject.half or subject.offers("float32")]
    for subject in each(narrow, "gradients", "weights-bound"):
        form = subject.precision if subject.half else "float32"
        instance = subject.build(dtype=form, num_layers=3, block_size=20, max_len=20).randomize(draw)
        inputs = instance.example_inputs(draw, batch=3, tokens=19)
        cotangent = cotangent_for(instance, inputs, draw)
        found = differentiate(instance, inputs, cotangent)
        ways = directions(draw, instance.weights | differentiable(instance, inputs))
        wanted = slope_of_definition(instance, inputs, ways, cotangent)
        gradients = {**found.inputs, **found.parameters}
        given = compare(gradients, ways | _raw(instance, ways), wanted)
        label = f"{subject.name}: the derivative along all inputs and parameters"
        if not subject.half:
            given.check(label, 10 * tolerance("float32", depth(instance)))  # rounding adds up forward and backward
        else:  # only this clause compares it
            check_slope_in_half(label, given, instance, inputs, ways, cotangent, draw)
            least = given.scale / np.sqrt(len(ways))
            for name, way in ways.items():
                wanted = slope_of_definition(instance, inputs, {name: way}, cotangent)
                alone = {name: way} if name in found.inputs else _raw(instance, {name: way})
                part = compare(gradients, alone, wanted, scale=least)
                label = f"{subject.name}: the derivative along {name}"
                check_slope_in_half(label, part, instance, inputs, {name: way}, cotangent, draw)


@clause("GRAD-REPEAT")
def test_the_same_backward_pass_twice_gives_the_same_gradients(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "gradients"):
        instance, inputs = subject.example(draw, num_layers=1)
        other = instance.example_inputs(draw, batch=3)
        cotangent = cotangent_for(instance, inputs, draw)
        first = differentiate(instance, inputs, cotangent)
        differentiate(instance, other, cotangent_for(instance, other, draw))
        again = differentiate(instance, inputs, cotangent)
        _check_same(subject.name, _flat(again), _flat(first), subject.tolerance(depth(instance)))


@clause("GRAD-TRAIN")
def test_without_dropout_training_mode_gives_the_gradients_of_eval_mode(every: list[Subject], draw: Draw) -> None:
    compared = 0
    for subject in each(every, "gradients", "modes"):
        instance, inputs = subject.example(draw, num_layers=3, dropout=0.0)
        if drops_at_own_rate(instance, *inputs):
            continue
        compared += 1
        cotangent = cotangent_for(instance, inputs, draw)
        want, got = (differentiate(instance, inputs, cotangent, mode=mode) for mode in ("eval", "train"))
        if not instance.keeps_parameters():  # they have other places in training: what they stand for is compared
            got, want = replace(got, parameters={}), replace(want, parameters={})
        _check_same(subject.name, _flat(got), _flat(want), subject.tolerance(depth(instance)))
    if not compared:
        raise NotApplicable("whatever it exports drops at a rate that nobody can set")


@clause("GRAD-DROPOUT")
def test_with_dropout_gradients_are_those_of_what_was_kept(every: list[Subject], draw: Draw) -> None:
    compared = 0
    for subject in each(wide_enough(every), "gradients", "modes", "dropout"):
        instance, inputs = subject.example(draw, num_layers=1, dropout=0.3)
        one, again = (instance(*inputs, mode="train", seed=1) for _ in range(2))
        if np.array_equal(one, again):  # otherwise it uses a separate generator
            compared += 1
            how = {"step": STEP[subject.precision], "tolerance": GRADIENT[subject.precision]}
            check_gradients(subject.name, Point.of(instance, inputs, mode="train", seed=1), draw, **how)
    if not compared:
        raise NotApplicable("its dropout does not depend on the global random seed")


@clause("GRAD-BATCH-MEAN")
def test_the_gradient_of_one_element_is_the_same_in_a_batch_and_alone(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "gradients"):
        instance, inputs = subject.example(draw, num_layers=1)
        if subject.half and subject.variant.activation == "relu" and any("up." in n for n in instance.canonical):
            continue  # a batch rounds otherwise than one element, and a bend turns that into another gradient
        cotangent = cotangent_for(instance, inputs, draw)
        cotangent[1:] = 0.0
        batch, alone = (differentiate(instance, tuple(a[:n] for a in inputs), cotangent[:n]) for n in (2, 1))
        for name, gradient in batch.inputs.items():
            if gradient is not None:
                check_zero(f"{subject.name}: the gradient that reaches the other element's {name}", gradient[1:])
        first = {n: g if g is None else g[:1] for n, g in batch.inputs.items()}
        both, one = (with_unchosen(instance, found) for found in ({**batch.parameters, **first}, _flat(alone)))
        _check_same(subject.name, both, one, subject.tolerance(depth(instance)))


@clause("GRAD-FINITE")
def test_gradients_of_long_and_large_inputs_are_finite(every: list[Subject], draw: Draw) -> None:
    if any(subject.precision == "float16" for subject in every):
        raise NotApplicable.from_formats("gradients beyond 65504 are what losses are scaled for in float16")
    for subject in each(every, "gradients"):
        gain = 1.0 if "ids" not in subject.bound.component.inputs else subject.up_to(30.0, power=4)
        instance = subject.build(block_size=48, max_len=48).scatter(draw, gain=gain)
        inputs = tuple(_enlarged(a, subject.up_to(1e4, power=3)) for a in instance.example_inputs(draw, tokens=48))
        _check_all_finite(subject.name, differentiate(instance, inputs, cotangent_for(instance, inputs, draw)))
        if len(inputs) > 1 and subject.offers("masks"):
            masked = (*inputs, draw.mask(inputs[0].shape[-2], inputs[1].shape[-2], allowed=0.3))
            found = differentiate(instance, masked, cotangent_for(instance, inputs, draw))
            _check_all_finite(f"{subject.name} with a mask", found)


@clause("GRAD-SIZES")
def test_gradients_are_right_at_every_size(every: list[Subject], draw: Draw) -> None:
    refused = None
    named = (
        "ScaledDotProductAttention", "SelfAttention", "MultiHeadAttention", "FeedForward", "PositionalEncoding",
        "TransformerBlock", "TinyTransformerLM",
    )  # fmt: skip
    subjects = list(each(wide_enough(every), "gradients", "weights-bound", named=named))
    for subject in subjects:
        try:
            check_gradients_at_sizes(subject, draw, after="GRAD-CHECK")
        except NotApplicable as reason:
            refused = reason
    if refused is not None and len(subjects) == 1:
        raise refused


@clause("GRAD-SOFTMAX")
def test_attention_weights_have_the_jacobian_of_a_softmax(attend: Attend, draw: Draw) -> None:
    golden = np.array([[0.16, -0.06, -0.10], [-0.06, 0.21, -0.15], [-0.10, -0.15, 0.25]])
    rows = np.broadcast_to(np.log([0.2, 0.3, 0.5]), (3, 3))
    found, allowed = _jacobian(attend, rows, np.eye(3)), 10 * attend.tolerance()
    check_close("diag(p) - p pᵀ for p = (0.2, 0.3, 0.5)", found, golden, allowed)
    scores, cotangent = draw.values(4, 6, scale=2.0), draw.values(4, 6)
    weights = softmax(scores)
    wanted = weights * (cotangent - (weights * cotangent).sum(axis=-1, keepdims=True))
    check_close("the gradient of the scores", _jacobian(attend, scores, cotangent), wanted, allowed)


@clause("GRAD-EARLY")
def test_the_first_of_twelve_blocks_receives_a_gradient_of_the_size_of_the_last_ones(
    model: Subject, draw: Draw
) -> None:
    instance = model.build(num_layers=12)
    layers = instance.sizes["num_layers"]
    inputs = instance.example_inputs(draw)
    found = differentiate(instance, inputs, cotangent_for(instance, inputs, draw)).parameters
    shapes = {p["name"]: p["shape"] for p in instance.trainable}
    reached = {name: np.zeros(shapes[name]) if gradient is None else gradient for name, gradient in found.items()}
    canonical = model.bound.to_canonical(reached, instance.sizes)
    first, last = (_size(canonical, f"blocks.{layer}.") for layer in (0, layers - 1))
    sentence = f"the gradient of the first of {layers} blocks is {first:.2g}, that of the last {last:.2g}"
    check(sentence, 1e-3 * last <= first <= 1e3 * last)


def _check_reached(label: str, gradient: Array | None) -> None:
    check(f"{label} does not exist, expected one", gradient is not None)
    assert gradient is not None
    check_finite(label, gradient)
    missed = ~np.abs(gradient).max(axis=-1).astype(bool)
    at = ", ".join(map(str, np.argwhere(missed)[0])) if missed.any() else ""
    check(f"{label} is 0 everywhere in row [{at}], expected another number", not missed.any())


def _zeros(shape: Sequence[int], gradient: Array | None) -> Array:
    """Return the mask of entries without a gradient."""
    return np.ones(shape, np.bool_) if gradient is None else np.asarray(gradient == 0.0)


def _check_independent(point: Point, name: str, silent: Array, before: Array, draw: Draw) -> None:
    """Check that the output does not depend on those entries of a parameter that received no gradient.

    Units of ReLU that are off for every input receive none either: the change must not activate them. In narrower
    formats, where any visible change would, only whole parameters are checked.
    """
    subject = point.instance.subject
    wide = subject.precision == "float64"
    if not wide and not silent.all():
        return
    step, noise = (1e-8, 1e-11) if wide else (0.3, 2 * subject.tolerance()) if subject.half else (1e-2, 1e-5)
    after = point.output({name: draw.values(*silent.shape) * silent}, step)
    point.output({}, 0.0)
    change = float(np.abs(after - before).max() / np.abs(before).max())
    share = "no gradient" if silent.all() else f"no gradient in {int(silent.sum())} of its {silent.size} entries"
    label = f"{subject.name}: {name} receives {share}, but the output depends on it"
    check(label, change < noise, kind=Kind.NO_EFFECT)


def _raw(instance: Instance, ways: Mapping[str, Array]) -> dict[str, Array]:
    """Return the direction of canonical weights as one of the implementation's parameters: the map is affine."""
    bound, sizes = instance.subject.bound, instance.sizes
    there = bound.to_implementation(moved(instance.weights, ways, 1.0), sizes)
    here = bound.to_implementation(instance.weights, sizes)
    return {name: there[name] - here[name] for name in here}


def _size(gradients: Mapping[str, Array], prefix: str) -> float:
    """Return the root mean square of the gradients whose names have this prefix."""
    chosen = np.concatenate([gradient.ravel() for name, gradient in gradients.items() if name.startswith(prefix)])
    return float(np.sqrt((chosen**2).mean()))


def _flat(found: Gradients) -> dict[str, Array | None]:
    return {**found.parameters, **found.inputs}


def _check_same(label: str, got: Mapping[str, Array | None], want: Mapping[str, Array | None], allowed: float) -> None:
    """Check that gradients agree, relative to the largest: some are 0 except for rounding."""
    scale = max((float(np.abs(g).max(initial=0.0)) for g in want.values() if g is not None), default=0.0)
    for name, gradient in got.items():
        wanted = want[name]
        check(
            f"{label}: the gradient of {name} exists in one of two passes only", (gradient is None) == (wanted is None)
        )
        if gradient is not None and wanted is not None:
            check_close(f"{label}: the gradient of {name}", gradient, wanted, allowed, scale=max(scale, 1e-30))


def _check_all_finite(label: str, found: Gradients) -> None:
    check_finite(f"{label}: the output", found.out)
    for name, gradient in _flat(found).items():
        if gradient is not None:
            check_finite(f"{label}: the gradient of {name}", gradient)


def _enlarged(array: Array, times: float) -> Array:
    """Return a batch whose last element is multiplied by `times`; ids are unchanged."""
    if not np.issubdtype(array.dtype, np.floating):
        return array
    factor = np.ones((len(array),) + (1,) * (array.ndim - 1))
    factor[-1] = times
    return array * factor


def _jacobian(attend: Attend, scores: Array, cotangent: Array) -> Array:
    """Pull a cotangent of the weights (T, n) back to the scores: with k = √n 1 and v = 1, q equals the scores."""
    lead = attend.subject.bound.leading(1)
    count = scores.shape[-1]
    q, c = (np.broadcast_to(a, (*lead, *a.shape)) for a in (scores, cotangent))
    one = np.broadcast_to(np.eye(count), (*lead, count, count))
    found = attend.vjp(q, one * np.sqrt(count), one, cotangent=c).inputs["q"]
    check("the gradient of q does not exist, expected one", found is not None)
    assert found is not None
    return np.asarray(found.reshape(-1, *scores.shape)[0])
