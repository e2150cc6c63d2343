"""Clauses of spec/stability.md."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_finite,
    check_hidden,
    check_shape,
    each_of,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.formats import HALF, rounded
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.differences import cotangent_for, differentiate
from conformkit.conformance.evidence.for_each_component import each
from conformkit.conformance.evidence.half_precision import check_halves
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.attention import scaled_dot_product_attention, softmax
from conformkit.spec.tolerances import Precision, tolerance

KEYS = 16
"""A square, so that √d_k is exact, and so is every score."""
_SIZE: dict[Precision, float] = {"float64": 1e4, "float32": 1e3, "float16": 128.0, "bfloat16": 128.0}
"""Scores far beyond what an exponential holds, in each format."""
_EPS: dict[Precision, float] = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The distance from 1 to the next number."""


@clause("NUM-SOFTMAX-LARGE")
def test_weights_are_exact_for_scores_of_ten_thousand(attend: Attend, draw: Draw) -> None:
    for instance, precision in _formats(attend.subject):
        size = _SIZE[precision]
        signs = np.where(draw.uniform(5, KEYS) < 0.5, -size, size)
        scores = rounded(signs + draw.values(5, KEYS), "float32", precision)
        _check_weights(instance, scores, precision)


@clause("NUM-ALL-NEGATIVE")
def test_rows_far_below_the_rest_keep_their_weights(attend: Attend, draw: Draw) -> None:
    for instance, precision in _formats(attend.subject):
        size = _SIZE[precision]
        level = np.array([-size, size, -size, 0.0, size])[:, None]
        _check_weights(instance, rounded(level + draw.values(5, KEYS), "float32", precision), precision)
        level = np.array([-size, size])[:, None, None]
        _check_weights(instance, rounded(level + draw.values(2, 5, KEYS), "float32", precision), precision)


@clause("NUM-SOFTMAX-SHIFT")
def test_a_constant_added_to_a_row_of_scores_changes_nothing(attend: Attend, draw: Draw) -> None:
    for instance, precision in _formats(attend.subject):
        far = 128.0 if precision in HALF else 8192.0  # its sums with whole numbers are exact in each format
        q, k, v = _scored(instance, np.round(draw.values(5, KEYS, scale=3.0)))
        before = instance(q, k, v, np.zeros((5, KEYS)))
        shift = np.array([far, -far, 0.0, -far, far])[:, None]
        after = instance(q, k, v, np.broadcast_to(shift, (5, KEYS)).copy())
        check_close(f"the weights with ±{far:g} added to whole rows", after, before, _allowed(precision, far))
        _check_sums(after, precision)


@clause("NUM-MASKED-GARBAGE")
def test_huge_numbers_in_hidden_keys_and_values_do_not_leak(attend: Attend, draw: Draw) -> None:
    lead = attend.subject.bound.leading(2)
    q, k, v = draw.values(*lead, 5, 4), draw.values(*lead, 7, 4), draw.values(*lead, 7, 3)
    mask = np.broadcast_to(np.array([1, 0, 1, 1, 0, 0, 1], np.bool_), (5, 7)).copy()
    before = attend(q, k, v, mask)
    large, huge = attend.subject.up_to(1e6), attend.subject.up_to(1e30)
    for sign in (1.0, -1.0):
        hidden = np.where(mask[0], 0.0, sign)[:, None]
        keys, values = k + large * hidden, v + huge * hidden
        spoilt = {"keys": (keys, v), "values": (k, values), "keys and values": (keys, values)}
        for which, (its_keys, its_values) in spoilt.items():
            label = f"the output, {sign * large:.0e} in hidden keys or {sign * huge:.0e} in values, here in {which},"
            check_close(label, attend(q, its_keys, its_values, mask), before, attend.tolerance())


@clause("NUM-TINY")
def test_vanishing_queries_and_keys_give_the_mean_of_the_values(attend: Attend, draw: Draw) -> None:
    lead = attend.subject.bound.leading(2)
    v = draw.values(*lead, 7, 3)
    output = attend(draw.values(*lead, 5, 4) * 1e-20, draw.values(*lead, 7, 4) * 1e-20, v)
    mean = np.broadcast_to(v.mean(axis=-2, keepdims=True), output.shape)
    check_shape("the output", output, (*lead, 5, 3))
    check_close("the output", output, mean, attend.tolerance())


@clause("NUM-LONG")
def test_rows_of_2048_keys_sum_to_one(attend: Attend, draw: Draw) -> None:
    lead = attend.subject.bound.leading(1)
    q, k = draw.values(*lead, 3, 8), draw.values(*lead, 2048, 8)
    check_close("the output for values of 1", attend(q, k, np.ones((*lead, 2048, 1))), np.ones((*lead, 3, 1)), 1e-4)
    v = draw.values(*lead, 2048, 2)
    check_close("the output", attend(q, k, v), scaled_dot_product_attention(q, k, v), 1e-4)


@clause("NUM-HALF-MASK")
def test_a_mask_hides_keys_in_half_precision(attend: Attend, draw: Draw) -> None:
    lead = attend.subject.bound.leading(2)
    q, k, mask = draw.values(*lead, 5, 4), draw.values(*lead, 6, 4), draw.mask(5, 6)
    one = np.broadcast_to(np.eye(6), (*lead, 6, 6)).copy()
    for instance, _ in _halves(attend.subject, (q, k, one), draw):
        weights = instance(q, k, one, mask)
        check_shape("the output", weights, (*lead, 5, 6))
        check_hidden("the weight of a hidden key", weights, mask, at_most=1e-6)
        check_close("the weights", weights, scaled_dot_product_attention(q, k, one, mask), 2e-2, hidden=~mask)


@clause("NUM-HALF-PRODUCT")
def test_scores_are_scaled_before_they_overflow(attend: Attend, draw: Draw) -> None:
    lead, width, keys = attend.subject.bound.leading(1), 256, 4
    signs = np.sign(draw.values(*lead, keys, width))  # rows far from parallel: each key is its own query's
    q, k, v = 20.0 * signs, 20.0 * signs, draw.values(*lead, keys, 5)  # products 102400, scores 6400
    judged = 0
    for instance, output in _halves(attend.subject, (q, k, v), draw):
        if instance.dtype == "float16":
            judged += 1
            check_finite("the output", output)
            want = scaled_dot_product_attention(q, k, instance.held(v))
            check_close("the output", output, want, tolerance("float16"))
    if not judged:
        raise NotApplicable.from_formats("float16 is not accepted")


@clause("NUM-NORM-ZERO")
def test_rows_of_equal_features_give_finite_outputs(block: Subject, draw: Draw) -> None:
    for instance, x in _constant_rows(block, draw):
        check_finite("the output", instance(x))


@clause("NUM-NORM-ZERO-GRAD")
def test_rows_of_equal_features_give_finite_gradients(block: Subject, draw: Draw) -> None:
    if block.precision == "float16":
        raise NotApplicable.from_formats("gradients of such rows, 1 / √ε for each norm, are too large for float16")
    for instance, x in _constant_rows(block, draw):
        found = differentiate(instance, (x,), cotangent_for(instance, (x,), draw))
        check_finite("the output", found.out)
        for name, gradient in {**found.inputs, **found.parameters}.items():
            if gradient is not None:
                check_finite(f"the gradient of {name}", gradient)


@clause("NUM-F32-F64")
def test_a_model_gives_the_same_logits_in_float32_and_in_float64(model: Subject, draw: Draw) -> None:
    wide, narrow = model.build(dtype="float64").scatter(draw), model.build(dtype="float32")
    raw = wide.read_raw()
    narrow.write_raw({p["name"]: raw[p["name"]] for p in narrow.trainable})
    inputs = wide.example_inputs(draw, tokens=9)
    check_close("the float32 logits", narrow(*inputs), wide(*inputs), 1e-4)


@clause("NUM-LARGE-INPUT")
def test_outputs_of_large_inputs_are_finite(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        gain = 1.0 if "ids" not in subject.bound.component.inputs else subject.up_to(30.0, power=4)
        instance = subject.build(dtype="float32" if subject.offers("float32") else None).scatter(draw, gain=gain)
        large = subject.up_to(1e4, power=2)
        inputs = tuple(a if a.dtype.kind == "i" else a * large for a in instance.example_inputs(draw))
        check_finite(f"{subject.name}: the output", instance(*inputs))


@clause("NUM-NAN-LOCAL")
def test_nan_in_one_sequence_stays_there(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, without=("TinyTransformerLM",)):
        instance = subject.build().scatter(draw)
        inputs = instance.example_inputs(draw, batch=3)
        before = instance(*inputs)
        check_finite(f"{subject.name}: the output", before)
        broken = tuple(np.where(np.arange(3).reshape(3, *(1,) * (a.ndim - 1)) == 1, np.nan, a) for a in inputs)
        with contextlib.suppress(ImplementationFailure):
            after = instance(*broken)
            check_close(f"{subject.name}: the other sequences", after[[0, 2]], before[[0, 2]], subject.tolerance())


@clause("NUM-HALF")
def test_half_precision_gives_finite_outputs(every: list[Subject], draw: Draw) -> None:
    refused = 0
    for subject in each(every):
        try:
            instance, output = next(_halves(subject, None, draw, max_len=64, block_size=64, num_layers=1))
            check_finite(f"{subject.name}: the output in {instance.dtype}", output)
        except NotApplicable:
            refused += 1
    if refused == len(every):
        raise NotApplicable.from_formats("no component accepts half precision")


@clause("NUM-HALF-ERROR")
def test_errors_in_half_precision_are_roundings(every: list[Subject], draw: Draw) -> None:
    judged = 0
    for subject in each(every, "weights-bound"):
        judged += check_halves(subject, draw, max_len=64, block_size=64, num_layers=1)
    if not judged:
        raise NotApplicable.from_formats("no component accepts half precision")


def _formats(subject: Subject) -> Iterator[tuple[Instance, Precision]]:
    """Yield an instance for each number format that is supported, and its accuracy."""
    yield subject.build(), subject.precision
    if subject.offers("float32") and subject.bound.dtype != "float32":
        yield subject.build(dtype="float32"), "float32"


def _halves(
    subject: Subject, inputs: tuple[Array, ...] | None, draw: Draw, **wanted: int
) -> Iterator[tuple[Instance, Array]]:
    """Yield an instance in each half precision that is accepted, and its output; by default for 64 positions.

    Accepted means: parameters could be converted, and a plain call raises nothing. Raises NotApplicable when none is.
    """
    accepted = 0
    for name in each_of("name", (subject.precision,) if subject.half else HALF):
        try:
            instance = subject.build(dtype=name, **wanted).scatter(draw)
            output = instance(*(inputs or instance.example_inputs(draw, batch=1, tokens=64)))
        except ImplementationFailure:
            continue
        if all(p["dtype"] == name for p in instance.trainable):
            accepted += 1
            yield instance, output
    if not accepted:
        raise NotApplicable.from_formats(f"{subject.name} accepts no half precision")


def _scored(instance: Instance, scores: Array) -> tuple[Array, Array, Array]:
    """Return q, k and v of such scores, (T, 16) or one for each element of a batch; the output is the weights."""
    lead = instance.subject.bound.leading(len(scores) if scores.ndim > 2 else 1)
    if scores.ndim > 2:
        scores = scores.reshape(len(scores), *(1,) * (len(lead) - 1), *scores.shape[1:])
    one = np.broadcast_to(np.eye(KEYS), (*lead, KEYS, KEYS)).copy()
    return np.broadcast_to(scores, (*lead, *scores.shape[-2:])).copy(), one * np.sqrt(KEYS), one


def _check_weights(instance: Instance, scores: Array, precision: Precision) -> None:
    q, k, v = _scored(instance, scores)
    got = instance(q, k, v)
    check_close(f"the weights in {instance.dtype}", got, softmax(q), _allowed(precision, np.abs(q).max()))
    _check_sums(got, precision)


def _check_sums(weights: Array, precision: Precision) -> None:
    """Check in half precision, where such large scores fix no single weight, that a row adds up to about 1."""
    if precision in HALF:
        off = np.abs(np.log(np.maximum(weights.sum(axis=-1), 1e-30)))
        check(f"a row of weights adds up to {np.exp(off.max()):.3g} times 1, or that part", bool(off.max() < 1.0))


def _allowed(precision: Precision, size: float) -> float:
    """Return the usual tolerance, or the effect of rounding scores of that size, which right code may do."""
    return max(tolerance(precision), 2 * _EPS[precision] * size)


def _constant_rows(block: Subject, draw: Draw) -> Iterator[tuple[Instance, Array]]:
    """Yield blocks, as constructed and with random weights, and sequences of constant rows, alone and in a batch."""
    for scattered in (False, True):
        instance = block.build()
        width = instance.sizes["d_model"]
        x = draw.values(3, block.tokens(5), width)
        x[0], x[1], x[2, 0], x[2, -1] = 0.0, 3.7, 0.0, -100.0
        yield instance.scatter(draw) if scattered else instance, x
