"""Clauses of spec/refusals.md."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_refuses,
    check_shape,
    each_of,
    refusing,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.differences import output_shape
from conformkit.conformance.evidence.for_each_component import depth, each, takes
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

VECTORS = ("SelfAttention", "MultiHeadAttention", "FeedForward", "PositionalEncoding", "TransformerBlock")
SIZES = ("d_model", "d_ff", "d_k", "d_v", "vocab_size", "block_size", "max_len")


@clause("ERRH-DIVISIBLE")
def test_a_width_that_the_heads_do_not_divide_is_refused(every: list[Subject], draw: Draw) -> None:
    tried = 0
    for subject in each(every):
        for sizes in _indivisible(subject):
            tried += 1
            label = f"{subject.name} with d_model = {sizes['d_model']} and num_heads = {sizes['num_heads']}"
            check_refuses(label, _use(subject, sizes, draw))
    if not tried:
        raise NotApplicable("no component shares d_model among a number of heads")


@clause("ERRH-HEADS-ZERO")
def test_no_heads_and_negative_sizes_are_refused(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, without=("ScaledDotProductAttention",)):
        sizes = subject.sizes()
        bad = dict.fromkeys(SIZES, (-3,)) | {"num_heads": (0, -sizes.get("num_heads", 1))}
        for name, value in _bad_sizes(subject, bad):
            check_refuses(f"{subject.name} with {name} = {value}", _use(subject, sizes | {name: value}, draw))


@clause("ERRH-SIZE-ZERO")
def test_sizes_of_zero_are_refused_by_an_error_about_them(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, without=("ScaledDotProductAttention",)):
        bad = dict.fromkeys(SIZES, (0,)) | {"num_heads": (0,), "num_layers": (-1,)}
        for name, value in _bad_sizes(subject, bad):
            label = f"{subject.name} with {name} = {value}"
            refusal = _refusal(_use(subject, subject.sizes() | {name: value}, draw))
            check(f"{label} was accepted, expected an exception", refusal is not None)
            assert refusal is not None
            check(f"{label} raises {refusal}, expected an error that names it", refusal.type != "ZeroDivisionError")


@clause("ERRH-DROPOUT-RANGE")
def test_a_dropout_rate_that_is_no_probability_is_refused(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, "dropout"):
        for rate in (-0.1, 1.1):
            sizes = subject.sizes(num_layers=1) | {"dropout": rate}
            check_refuses(f"{subject.name} with dropout = {rate}", _use(subject, sizes, draw, mode="train"))


@clause("ERRH-FEATURE-DIM")
def test_inputs_of_another_width_are_refused(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, named=VECTORS):
        instance = subject.build()
        width, length = instance.sizes["d_model"], subject.tokens(4)
        for wrong in (n for n in (width + 1, 2 * width, width - 1) if n > 1):  # an extent of 1 may be stretched
            x = draw.values(2, length, wrong)
            with refusing():
                out = instance(x)
                _check_read_as_wide(f"{subject.name} of width {width} with x {x.shape}", instance, x, out)


@clause("ERRH-RANK")
def test_a_missing_batch_axis_is_never_misread(every: list[Subject], draw: Draw) -> None:
    for subject in each(every, without=("ScaledDotProductAttention",)):
        instance, (x,) = subject.example(draw, batch=1, num_layers=1)
        wanted = instance(x)
        with contextlib.suppress(ImplementationFailure):
            got = instance(x[0])
            got = got[None] if got.shape == wanted.shape[1:] else got
            check_close(f"{subject.name}: the output for an input {x[0].shape}", got, wanted, _tolerance(instance))


@clause("ERRH-EMPTY-SEQ")
def test_a_sequence_of_length_zero_gives_an_empty_result_or_an_error(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        instance = subject.build(num_layers=1)
        inputs = tuple(a[..., :0] if a.dtype.kind == "i" else a[..., :0, :] for a in instance.example_inputs(draw))
        shape = output_shape(instance, inputs)
        output = np.empty(shape)
        with refusing():
            output = instance(*inputs)
        check_shape(f"{subject.name}: the output for no positions", output, shape)


@clause("ERRH-NO-PARTIAL")
def test_after_a_refusal_the_object_serves_as_before(every: list[Subject], draw: Draw) -> None:
    for subject in each(every):
        instance, inputs = subject.example(draw, num_layers=1)
        before = instance(*inputs)
        for bad in _bad(instance, inputs, draw):
            with refusing():
                instance(*bad)
        check_close(f"{subject.name}: the output after a refusal", instance(*inputs), before, _tolerance(instance))


@clause("ERRH-MESSAGE")
def test_a_refusal_names_the_numbers_that_do_not_fit(every: list[Subject], draw: Draw) -> None:
    seen = 0
    for subject in each(every):
        for what, action, numbers in _mismatches(subject, draw):
            refusal = _refusal(action)
            if refusal is not None:
                seen += 1
                missing = [n for n in numbers if not re.search(rf"(?<!\d){n}(?!\d)", refusal.message)]
                says = repr(refusal.message.splitlines()[0]) if refusal.message else "nothing"
                wanted = " and ".join(map(str, missing))
                check(f"{subject.name} with {what} says {says}, expected {wanted} in it", not missing)
    if not seen:
        raise NotApplicable("nothing was refused")


@clause("ERRH-QK-DIM")
def test_queries_and_keys_of_different_widths_are_refused(attend: Attend, draw: Draw) -> None:
    for own, other in each_of("own, other", ((4, 5), (5, 4), (4, 8), (8, 4))):
        _check_refused(attend, draw, f"q of width {own} with k of width {other}", q=(5, own), k=(7, other), v=(7, 3))


@clause("ERRH-KV-LEN")
def test_keys_and_values_of_different_lengths_are_refused(attend: Attend, draw: Draw) -> None:
    for own, other in each_of("own, other", ((7, 5), (8, 4))):
        _check_refused(attend, draw, f"{own} keys with {other} values", q=(3, 4), k=(own, 4), v=(other, 6))
    lead = attend.subject.bound.leading(2)
    for own, other in each_of("own, other", ((5, 7), (4, 8))):
        q, k, v = draw.values(*lead, 3, 4), draw.values(*lead, own, 4), draw.values(*lead, other, 6)
        with refusing():
            got, want = attend(q, k, v), attend(q, k, v[..., :own, :])
            check_close(f"the output for {own} keys with {other} values, accepted,", got, want, attend.tolerance())


@clause("ERRH-VALUES-LEFT")
def test_more_values_than_keys_are_refused(attend: Attend, draw: Draw) -> None:
    for own, other in each_of("own, other", ((5, 7), (4, 8))):
        _check_refused(attend, draw, f"{own} keys with {other} values", q=(3, 4), k=(own, 4), v=(other, 6))


@clause("ERRH-BROADCAST")
def test_extents_of_one_are_not_stretched_to_fit(attend: Attend, draw: Draw) -> None:
    _check_refused(attend, draw, "q of width 4 with k of width 1", q=(5, 4), k=(7, 1), v=(7, 3))
    _check_refused(attend, draw, "q of width 1 with k of width 4", q=(5, 1), k=(7, 4), v=(7, 3))
    _check_refused(attend, draw, "7 keys with 1 value", q=(5, 4), k=(7, 4), v=(1, 3))
    _check_refused(attend, draw, "1 key with 7 values", q=(5, 4), k=(1, 4), v=(7, 3))


@clause("ERRH-MASK-SHAPE")
def test_a_mask_of_another_size_is_refused(attend: Attend, draw: Draw) -> None:
    lead = attend.subject.bound.leading(2)
    q, k, v = draw.values(*lead, 5, 4), draw.values(*lead, 7, 4), draw.values(*lead, 7, 3)
    scores = (*lead, 5, 7)
    for shape in each_of("shape", ((5, 6), (5, 8), (4, 7), (6, 7), (7, 5), (3, 5, 7))):
        mask, label = draw.mask(*shape), f"a mask {shape} for 5 queries and 7 keys"
        cut = mask[..., :5, :7]
        if not _broadcasts(cut.shape, scores):  # too few rows or columns, or another batch
            check_refuses(label, partial(attend, q, k, v, mask))
            continue
        with refusing():
            check_close(
                f"the output for {label}, accepted,", attend(q, k, v, mask), attend(q, k, v, cut), attend.tolerance()
            )


@clause("ERRH-MASK-CUT")
def test_a_mask_that_is_too_large_is_refused(attend: Attend, draw: Draw) -> None:
    lead = attend.subject.bound.leading(2)
    q, k, v = draw.values(*lead, 5, 4), draw.values(*lead, 7, 4), draw.values(*lead, 7, 3)
    for shape in each_of("shape", ((5, 8), (6, 7))):
        check_refuses(f"a mask {shape} for 5 queries and 7 keys", partial(attend, q, k, v, draw.mask(*shape)))


@clause("ERRH-MASK-GROW")
def test_a_mask_does_not_enlarge_the_result(attend: Attend, draw: Draw) -> None:
    for batch, shape in each_of("batch, shape", ((3, (3, 1, 5, 7)), (3, (1, 1, 5, 7)), (1, (2, 5, 7)))):
        q, k, v = draw.values(batch, 5, 4), draw.values(batch, 7, 4), draw.values(batch, 7, 3)
        output = np.empty((batch, 5, 3))
        with refusing():
            output = attend(q, k, v, draw.mask(*shape))
        check_shape(f"the output under a mask {shape}", output, (batch, 5, 3))


@clause("ERRH-FLOAT-IDS")
def test_ids_that_are_real_numbers_are_refused(model: Subject, draw: Draw) -> None:
    instance, (ids,) = model.example(draw, num_layers=1)
    check_refuses("ids of a floating format", partial(instance, ids + 0.25))


@clause("ERRH-OVERLONG")
def test_inputs_far_longer_than_the_block_size_are_refused(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1)
    size = instance.sizes["block_size"]
    ids = draw.ids(instance.sizes["vocab_size"], 2, 2 * size)
    for length in (2 * size, size + 1):
        check_refuses(f"{length} ids with block_size = {size}", partial(instance, ids[:, :length]))
    instance(ids[:, : model.as_asked.tokens(size)])
    check_refuses(f"{size + 1} ids with block_size = {size}", partial(instance, ids[:, : size + 1]))


@clause("ERRH-TOP-RANGE")
def test_a_top_p_that_is_no_probability_is_refused(model: Subject, draw: Draw) -> None:
    instance = model.build(num_layers=1)
    ids = draw.ids(instance.sizes["vocab_size"], 2, model.tokens(3))
    for value in (-0.1, 1.5):
        check_refuses(f"top_p = {value}", partial(instance.generate, ids, 2, seed=1, top_p=value))


def _broadcasts(shape: tuple[int, ...], scores: tuple[int, ...]) -> bool:
    """Whether a mask has an entry for each score; further axes in front make it a mask for several."""
    same = zip(reversed(shape), reversed(scores), strict=False)
    return shape[-2:] == scores[-2:] and all(1 in pair or pair[0] == pair[1] for pair in same)


def _check_read_as_wide(label: str, instance: Instance, x: Array, out: Array) -> None:
    """Check that an input of another width was read as one of that width, if it was accepted."""
    if instance.subject.name == "PositionalEncoding" and instance.subject.variant.positions == "sinusoidal":
        wide = instance.subject.as_asked.build(d_model=x.shape[-1], max_len=instance.sizes["max_len"])
        check(f"{label} was accepted, expected an exception", wide.sizes["d_model"] == x.shape[-1])
        check_close(f"the output of {label}, which was accepted,", out, wide(x), _tolerance(instance))
        return
    wanted = (*x.shape[:-1], instance.sizes.get("d_v") or x.shape[-1])
    check(f"{label} was accepted, and gives {out.shape}, expected an exception, or {wanted}", out.shape == wanted)
    for feature in (0, x.shape[-1] - 1):
        other = x.copy()
        other[0, -1, feature] += 1.0
        moved = np.abs(instance(other) - out).max(axis=-1)
        reached = f"{label} was accepted, and feature {feature}"
        check(f"{reached} does not matter, expected an exception", moved[0, -1] > 0.0)
        check(f"{reached} of one sequence reaches another, expected an exception", not (moved[1] > 1e-3).any())


def _refusal(action: Callable[[], Any]) -> ImplementationFailure | None:
    """Return what the implementation raised, None when it went on; anything but an exception is no refusal."""
    try:
        action()
    except ImplementationFailure as failure:
        if failure.kind != "exception":
            raise
        return failure
    return None


def _use(subject: Subject, sizes: Mapping[str, Any], draw: Draw, *, mode: str = "eval") -> Callable[[], Any]:
    """Return the action of constructing with these sizes and calling once: a refusal counts at either point."""
    longest = min(sizes.get("block_size", 3), sizes.get("max_len", 3), subject.tokens(3))
    shape = (2, max(longest, 1))
    ids = "ids" in subject.bound.component.inputs
    x = np.zeros(shape, np.int64) if ids else draw.values(*shape, max(sizes["d_model"], 0))
    return lambda: subject.construct(sizes).call(x, mode=mode, seed=1)


def _constructible(subject: Subject, sizes: Mapping[str, Any]) -> bool:
    """Whether the declared arguments have values for these sizes: `d_model // num_heads` has none for no heads."""
    try:
        subject.bound.build_request(sizes, dtype=subject.bound.dtype, seed=0)
    except (ExpressionError, ZeroDivisionError):
        return False
    return True


def _indivisible(subject: Subject) -> Iterator[dict[str, Any]]:
    """Yield sizes whose width the heads do not divide, where they should and where there are at least two."""
    if not takes(subject, "d_model", "num_heads") or subject.variant.head_width != "d_model // num_heads":
        return
    if takes(subject, "head_width") or "//" in str(subject.bound.construct):  # it is given the width of a head
        return
    sizes = subject.sizes(num_layers=1)
    heads, step = sizes["num_heads"], subject.bound.limits.of("d_model").multiple_of or 1  # no other rule is broken
    for width in (sizes["d_model"] + step, heads - 1):
        if width % heads and heads > 1:
            yield sizes | {"d_model": width, "head_width": width // heads}


def _bad_sizes(subject: Subject, bad: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, int]]:
    """Yield the arguments among these that the constructor takes, each with its bad values."""
    sizes = subject.sizes()
    for name in (n for n in bad if n in sizes and takes(subject, n)):
        yield from ((name, value) for value in bad[name] if _constructible(subject, sizes | {name: value}))


def _bad(instance: Instance, inputs: tuple[Array, ...], draw: Draw) -> Iterator[tuple[Array, ...]]:
    """Yield inputs that do not fit: another width, ids outside the vocabulary, too many positions."""
    first, sizes = inputs[0], instance.sizes
    if len(inputs) > 1:
        yield first, draw.values(*inputs[1].shape[:-1], inputs[1].shape[-1] + 1), inputs[2]
    elif first.dtype.kind == "i":
        yield (first + sizes["vocab_size"],)
        yield (draw.ids(sizes["vocab_size"], 3, sizes["block_size"] + 1),)
    else:
        yield (draw.values(3, first.shape[1], first.shape[2] + 1),)


def _mismatches(subject: Subject, draw: Draw) -> Iterator[tuple[str, Callable[[], Any], tuple[int, ...]]]:
    """Yield what does not fit, how to try it, and the numbers that a message should name."""
    for sizes in _indivisible(subject):
        numbers = (sizes["d_model"], sizes["num_heads"])
        yield f"d_model = {numbers[0]} and num_heads = {numbers[1]}", _use(subject, sizes, draw), numbers
        break
    instance = subject.build(num_layers=1)
    if subject.name in VECTORS:
        width = instance.sizes["d_model"]
        x = draw.values(2, subject.tokens(4), width + 1)
        yield f"an input of width {width + 1}", partial(instance, x), (width + 1, width)
    longest = instance.sizes.get("max_len") or instance.sizes.get("block_size")
    if longest:
        ids = "ids" in subject.bound.component.inputs
        long = draw.ids(2, 2, longest + 1) if ids else draw.values(2, longest + 1, instance.sizes["d_model"])
        yield f"{longest + 1} positions", partial(instance, long), (longest + 1, longest)


def _check_refused(attend: Attend, draw: Draw, label: str, **shapes: tuple[int, int]) -> None:
    lead = attend.subject.bound.leading(2)
    arrays = [draw.values(*lead, *shapes[name]) for name in "qkv"]
    check_refuses(label, partial(attend, *arrays))


def _tolerance(instance: Instance) -> float:
    return instance.subject.tolerance(depth(instance))
