"""Clauses of spec/behaviour.md."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_dtype,
    check_equal,
    each_of,
    refusing,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.formats import HALF
from conformkit.conformance.binding.sizes import DERIVED
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.for_each_component import each
from conformkit.conformance.evidence.own_draws import check_own_draws, unit_matrices
from conformkit.conformance.evidence.twins import check_same, fresh, twin
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

VECTORS = ("SelfAttention", "MultiHeadAttention", "FeedForward", "TransformerBlock")
"""Components without a separate clause that protects their inputs."""
_NARROWER = 0.01
"""Rounding to float32 changes a component's numbers by a thousandth of this, also where they cancel."""


@clause("DET-EVAL")
def test_evaluation_gives_equal_outputs_for_equal_inputs(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        instance, inputs = subject.example(draw, dropout=0.5, num_layers=1)
        one, other = instance(*inputs, seed=1), instance(*inputs, seed=2)
        check_same(f"{subject.name}: the second output", other, one, instance)


@clause("DET-NO-GRAD")
def test_outputs_do_not_depend_on_whether_derivatives_are_recorded(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "gradients"):
        instance, inputs = subject.example(draw, num_layers=2)
        recorded, unrecorded = instance(*inputs), instance.call(*inputs, record=False).out
        check_close(f"{subject.name}: the output under no_grad", unrecorded, recorded, subject.tolerance(2))


@clause("DET-NO-STATE")
def test_a_call_leaves_no_trace_in_the_next_one(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        instance, inputs = subject.example(draw, num_layers=1)
        parameters, before = instance.read_raw(), instance(*inputs)
        _use(instance, draw)
        check_same(f"{subject.name}: the output after other calls", instance(*inputs), before, instance)
        after = instance.read_raw()
        for name in (p["name"] for p in instance.trainable):
            check_equal(f"{subject.name}: {name} after the calls", after[name], parameters[name])


@clause("DET-HISTORY-LENGTH")
def test_sequences_of_another_length_are_treated_afresh(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        growing, short = subject.example(draw, tokens=3, num_layers=1)
        long = growing.example_inputs(draw, tokens=7)
        shrinking = fresh(growing)
        results = [(growing(*x), shrinking(*y)) for x, y in ((short, long), (long, short))]
        (first_short, first_long), (then_long, then_short) = results
        check_same(f"{subject.name}: the output for more positions than before", then_long, first_long, growing)
        check_same(f"{subject.name}: the output for fewer positions than before", then_short, first_short, growing)


@clause("DET-SEED-LOCAL")
def test_the_global_random_state_is_the_callers(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        instance, inputs = subject.example(draw, dropout=0.5)
        outcome = instance.call(*inputs, watch=True)
        check(f"{subject.name} draws random numbers in evaluation mode", not outcome.used_random_state)
        if subject.offers("dropout") and subject.offers("modes"):
            one = instance.call(*inputs, mode="train").out
            other = twin(instance, seed=1).call(*inputs, mode="train").out
            after = f"{subject.name}: what is dropped right after construction, whatever the random state was before,"
            check_differs(after, one, other)


@clause("DET-SEPARATE")
def test_objects_with_other_arguments_leave_this_one_alone(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, without=("ScaledDotProductAttention",)):
        instance, inputs = subject.example(draw, num_layers=1, dropout=0.5)
        drops = subject.offers("modes") and _varies(instance, inputs)
        before = instance(*inputs)
        for other in _others(subject, instance):
            with contextlib.suppress(ImplementationFailure):
                other(*other.example_inputs(draw, batch=len(inputs[0]), tokens=inputs[0].shape[1]))
            sentence = f"{subject.name}: the output after an object with other arguments was built and called"
            check_same(sentence, instance(*inputs), before, instance)
        sentence = f"{subject.name}: nothing is dropped any more, after an object with dropout rate 0 was built"
        check(sentence, not drops or _varies(instance, inputs))


@clause("DET-NO-MUTATE")
def test_inputs_are_left_as_they_were(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, named=VECTORS):
        instance, inputs = subject.example(draw)
        for mode in ("eval", "train"):
            after = instance.call(*inputs, mode=mode, seed=1, echo=True).arguments["x"]
            before = subject.bound.to_theirs(inputs[0]).astype(after.dtype)
            check_equal(f"{subject.name}: its input after a call in {mode} mode", after, before)


@clause("DET-MEMORY-ORDER")
def test_the_order_of_an_input_in_memory_changes_nothing(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        instance, inputs = subject.example(draw, num_layers=1)
        with refusing():
            got = instance(*inputs, strided=True)
            check_same(f"{subject.name}: the output for a strided input", got, instance(*inputs), instance)


@clause("DET-COPY")
def test_a_deep_copy_computes_the_same_and_shares_nothing(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "parameters"):
        instance, inputs = subject.example(draw, num_layers=1)
        copy = instance.copy()
        before = instance(*inputs)
        check_same(f"{subject.name}: the output of a deep copy", copy(*inputs), before, instance)
        instance.scatter(draw)
        check_same(f"{subject.name}: the copy's output after the original changed", copy(*inputs), before, instance)


@clause("INIT-FRESH")
def test_two_objects_share_no_parameters(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "parameters"):
        one, other = subject.build(seed=1, num_layers=1), subject.build(seed=1, num_layers=1)
        inputs = other.example_inputs(draw, batch=6)
        before = other(*inputs)
        one.scatter(draw)
        check_same(f"{subject.name}: the output after another object changed", other(*inputs), before, other)


@clause("INIT-DISTINCT")
def test_initial_weights_break_symmetry(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "parameters", "weights-bound", without=("PositionalEncoding",)):
        matrices = unit_matrices(subject.build(seed=draw.integer(0, 999)).read())
        check(f"{subject.name} has no weights to compare", bool(matrices))
        for name, matrix in matrices.items():
            equal = len(matrix) - len(np.unique(matrix, axis=0))
            check(f"{subject.name}: {equal} rows of {name} are copies of others, expected none", not equal)


@clause("INIT-OWN-DRAWS")
def test_each_matrix_begins_with_numbers_of_its_own(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "parameters", "weights-bound", without=("PositionalEncoding",)):
        deep = subject.build(num_layers=draw.integer(7, 12), seed=draw.integer(0, 999))  # beyond the usual test's two
        check_own_draws(subject.name, deep.read())


@clause("DT-FLOAT32")
def test_float32_comes_out_where_float32_goes_in(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "float32", "gradients"):
        instance = subject.as_asked.build(dtype="float32", num_layers=1)
        inputs = instance.example_inputs(draw)
        check_dtype(f"{subject.name}: the output", instance.call(*inputs).dtype, "float32")
        _check_as_in_float64(subject, draw)
        if len(inputs) > 1 and subject.offers("masks"):
            mask = draw.mask(inputs[0].shape[-2], inputs[1].shape[-2])
            kinds = {"bool": mask, "float": np.where(mask, 0.0, -np.inf)}
            for kind in (k for k in kinds if subject.offers(f"{k}-masks")):
                outcome = instance.call(*inputs, kinds[kind])
                check_dtype(f"{subject.name}: the output with a {kind} mask", outcome.dtype, "float32")


def _check_as_in_float64(subject: Subject, draw: Draw) -> None:
    """Check that equal weights give the same in both formats, far beyond what rounding explains."""
    if subject.bound.dtype != "float64" or not subject.offers("float64"):
        return
    wide = subject.as_asked.build(dtype="float64", num_layers=1).scatter(draw)
    inputs, raw = wide.example_inputs(draw), wide.read_raw()
    want = wide(*inputs)
    narrow = subject.as_asked.build(dtype="float32", num_layers=1)
    narrow.write_raw({p["name"]: raw[p["name"]] for p in narrow.trainable})
    check_close(f"{subject.name}: the output in float32", narrow(*inputs), want, _NARROWER)


@clause("DT-FLOAT64")
def test_float64_comes_out_where_float64_goes_in(every: list[Subject], draw: Draw) -> None:
    wide = [subject for subject in every if subject.bound.dtype == "float64"]
    for subject in each(wide):
        instance = subject.build(dtype="float64", num_layers=1)
        dtype = instance.call(*instance.example_inputs(draw)).dtype
        if subject.name != "TinyTransformerLM" or dtype != "float32":  # logits may be of the loss's format
            check_dtype(f"{subject.name}: the output", dtype, "float64")


@clause("DT-HALF")
def test_half_precision_comes_out_where_half_precision_goes_in(every: list[Subject], draw: Draw) -> None:
    accepted = 0
    for subject in each(every, "gradients"):
        for half in (subject.precision,) if subject.half else HALF:
            with contextlib.suppress(ImplementationFailure):
                instance = subject.build(dtype=half, num_layers=1)
                outcome = instance.call(*instance.example_inputs(draw))
                if all(p["dtype"] == half for p in instance.trainable):
                    accepted += 1
                    check_dtype(f"{subject.name}: the output", outcome.dtype, half)
    if not accepted:
        raise NotApplicable.from_formats("no component accepts half precision")


@clause("DT-MASK-DTYPE")
def test_a_mask_means_the_same_in_every_number_format(attend: Attend, draw: Draw) -> None:
    lead = attend.subject.bound.leading(2)
    q, k, v = draw.values(*lead, 5, 4), draw.values(*lead, 7, 4), draw.values(*lead, 7, 3)
    mask = draw.mask(5, 7)
    wanted = attend(q, k, v, mask)
    bias = np.where(mask, 0.0, -np.inf)
    if attend.subject.half:
        attend.subject.requires("bool-masks")
        attend.subject.requires("float-masks")
        form = attend.subject.precision
        check_close(
            f"the output for {form} inputs and a {form} mask", attend(q, k, v, bias), wanted, attend.tolerance()
        )
    for own, other in each_of("own, other", _formats(attend.subject)):
        arrays = q.astype(own), k.astype(own), v.astype(own)
        label = f"the output for {own} inputs"
        if attend.subject.offers("bool-masks"):
            check_close(f"{label} and a boolean mask", attend(*arrays, mask, cast=False), wanted, 1e-5)
        if attend.subject.offers("float-masks"):
            check_close(f"{label} and a {own} mask", attend(*arrays, bias.astype(own), cast=False), wanted, 1e-5)
            with contextlib.suppress(ImplementationFailure):
                got = attend(*arrays, bias.astype(other), cast=False)
                check_close(f"{label} and a {other} mask", got, wanted, 1e-5)


@clause("DT-INT-IDS")
def test_integer_ids_give_logits_that_are_real_numbers(model: Subject, draw: Draw) -> None:
    instance, (ids,) = model.example(draw)
    outcome = instance.call(ids.astype(np.int64))
    floating = outcome.dtype in {"float64", "float32", "float16", "bfloat16"}
    check(f"the logits are {outcome.dtype}, expected a floating format", floating)


@clause("DT-INT32-IDS")
def test_ids_of_int32_mean_the_same_as_ids_of_int64(model: Subject, draw: Draw) -> None:
    instance, (ids,) = model.example(draw)
    narrow = instance(ids, format="int32")
    check_same("the logits for ids of int32", narrow, instance(ids), instance)


def _varies(instance: Instance, inputs: tuple[Array, ...]) -> bool:
    """Whether outputs in training mode depend on the random state, by more than where in memory a sum was made."""
    one, other = (instance(*inputs, mode="train", seed=seed) for seed in (1, 2))
    return not np.allclose(one, other, rtol=1e-3, atol=1e-6, equal_nan=True)


def _others(subject: Subject, instance: Instance) -> Iterator[Instance]:
    """Yield objects that differ in causality, number format, dropout rate or sizes."""
    own = {name: value for name, value in instance.sizes.items() if name not in DERIVED}
    form = "float32" if subject.offers("float32") else None
    yield subject.build(**{**own, "dropout": 0.0, "causal": not own.get("causal", True)})
    yield subject.build(dtype=form, **{**own, "dropout": 0.0, "num_heads": 1, "max_len": 6})


def _use(instance: Instance, draw: Draw) -> None:
    """Call with other values and another batch size, in training mode if there is one, and generate."""
    subject = instance.subject
    mode = "train" if subject.offers("modes") else None
    instance.call(*instance.example_inputs(draw, batch=3), mode=mode, seed=1)
    if subject.offers("generate"):
        with contextlib.suppress(ImplementationFailure):  # clauses on generation report it
            instance.generate(draw.ids(instance.sizes["vocab_size"], 1, subject.tokens(3)), 2, greedy=True)


def _formats(subject: Subject) -> Iterator[tuple[str, str]]:
    """Yield the supported input formats, each with the other one."""
    pairs = (("float64", "float32"), ("float32", "float64"))
    return (pair for pair in pairs if pair[0] == subject.bound.dtype or subject.offers(pair[0]))
