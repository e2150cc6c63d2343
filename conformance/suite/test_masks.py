"""Clauses of spec/masks.md."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from conformkit.conformance.assertions.checks import (
    Compared,
    check,
    check_close,
    check_equal,
    check_finite,
    check_hidden,
    check_shape,
    check_zero,
    each_of,
    refusing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.nothing_shown import check_nothing_shown
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.attention import attention_weights, scaled_dot_product_attention
from conformkit.spec.masks import additive, causal_mask

# --- kinds ------------------------------------------------------------------------------------------------------------


@clause("MASK-BOOL-POLARITY")
def test_true_means_that_the_query_may_attend(attend: Attend, draw: Draw) -> None:
    q, k, _ = draw.qkv(attend.leading(), queries=5, keys=5)
    mask = np.broadcast_to(_checkered(5), (*q.shape[:-1], 5))
    weights = attend.weights(0.0 * q, k, mask)
    allowed, hidden = _least_and_most(weights, mask)
    sentence = f"at equal scores a key marked True has weight {allowed:.3g}, one marked False {hidden:.3g}"
    compared = Compared(weights, mask / mask.sum(axis=-1, keepdims=True), 1e-6, hidden=~mask)
    holds = bool(allowed >= hidden - 1e-6)
    check(sentence, holds, *(() if holds else (_two_axes(attend, q, k),)), compared=compared)


def _two_axes(attend: Attend, q: Array, k: Array) -> str:
    """Return how a mask of queries and keys alone is read."""
    mask = _checkered(5)
    with contextlib.suppress(ImplementationFailure):
        allowed, hidden = _least_and_most(attend.weights(0.0 * q, k, mask), mask)
        return f"a mask {mask.shape} is read {'the other way round, too' if allowed < hidden else 'as it should be'}"
    return f"a mask {mask.shape} is refused"


def _least_and_most(weights: Array, mask: Array) -> tuple[float, float]:
    """Return the smallest weight where a mask is True, and the largest where it is False."""
    return float(np.where(mask, weights, np.inf).min()), float(np.where(mask, 0.0, weights).max())


@clause("MASK-NONE")
def test_without_a_mask_every_query_attends_to_every_key(attend: Attend, draw: Draw) -> None:
    for queries, keys in each_of("queries, keys", [(5, 5), (3, 6)]):
        q, k, _ = draw.qkv(attend.leading(), queries=queries, keys=keys)
        weights = attend.weights(q, k)
        check_finite("weights", weights)
        check(f"a key has weight {weights.min():.3g}, expected every one above 0", bool((weights > 0.0).all()))


@clause("MASK-FLOAT-ADD")
def test_a_float_mask_is_added_to_the_scaled_scores(attend: Attend, draw: Draw) -> None:
    q, k, _ = draw.qkv(attend.leading())
    shape = (*q.shape[:-1], 5)
    plain, bias = attend.weights(q, k), draw.values(*shape, scale=2.0)
    some = additive(draw.mask(*shape))
    for kind, mask in {
        "a bias, 0 and -∞": np.where(draw.mask(*shape), bias, 0.0) + some,
        "zeros": 0.0 * bias,
        "a bias": bias,
        "a bias above 0": np.abs(bias),
        "0 and -∞": some,
        "a bias and -∞": bias + some,
    }.items():
        under(kind)
        want = plain * np.exp(mask)
        want /= want.sum(axis=-1, keepdims=True)
        hidden = np.isneginf(mask) if np.isneginf(mask).any() else None
        check_close("weights", attend.weights(q, k, mask), want, attend.tolerance(2), hidden=hidden)


@clause("MASK-INT")
def test_a_mask_of_integers_is_read_as_a_boolean_one_or_refused(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    mask = draw.mask(3, 5)
    want = out = attend(q, k, v, mask)
    sent = replace(attend.subject.bound.mask.form, kind="int").passed(mask)
    with refusing():
        out = attend(q, k, v, sent)
    check_close("output under a mask of 0 and 1", out, want, attend.tolerance())


@clause("MASK-GRAD")
def test_a_float_mask_receives_the_gradient_of_the_scores(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    bias, cotangent = draw.values(3, 5), draw.values(*q.shape[:-1], 6)
    found = attend.instance.vjp(q, k, v, bias, cotangent=cotangent, wrt=("mask",)).inputs["mask"]
    check("no gradient leads from the output to the mask", found is not None)
    weights, to_weights = attention_weights(q, k, bias), cotangent @ np.swapaxes(v, -1, -2)
    to_scores = weights * (to_weights - (weights * to_weights).sum(axis=-1, keepdims=True))
    want = to_scores.sum(axis=tuple(range(q.ndim - 2)))
    got = attend.subject.bound.to_theirs(np.asarray(found))  # a mask keeps its axes, whatever the layout of inputs
    check_close("gradient of the mask", got.reshape(want.shape), want, attend.tolerance(2))


# --- hiding -----------------------------------------------------------------------------------------------------------


@clause("MASK-ZERO-WEIGHT")
def test_hidden_keys_get_weight_0_and_the_others_more(attend: Attend, draw: Draw) -> None:
    for mask in (_checkered(5), draw.mask(3, 7)):
        under(f"a mask {mask.shape}, the same for all elements")
        q, k, _ = draw.qkv(attend.leading(), queries=mask.shape[0], keys=mask.shape[1])
        full = np.broadcast_to(mask, (*q.shape[:-1], mask.shape[1]))
        _check_seen(attend.weights(q, k, full), full)


@clause("MASK-RENORM")
def test_the_remaining_weights_add_up_to_1(attend: Attend, draw: Draw) -> None:
    q, k, _ = draw.qkv(attend.leading())
    for allowed in each_of("allowed", [0.1, 0.5, 0.9]):
        mask = np.broadcast_to(draw.mask(3, 5, allowed=allowed), (*q.shape[:-1], 5))
        totals = attend.weights(q, k, mask).sum(axis=-1)
        check_close("sum over keys", totals, np.ones_like(totals), attend.tolerance())


@clause("MASK-BEFORE-SOFTMAX")
def test_masked_attention_is_attention_over_the_allowed_keys_alone(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    q, k, v = draw.qkv(leading, keys=6, scale=1.5)
    mask = draw.mask(3, 6)
    everything = attend(q, k, v, np.ones((*leading, 3, 6), np.bool_))
    check_close("output under a mask that allows everything", everything, attend(q, k, v), attend.tolerance())
    out = attend(q, k, v, np.broadcast_to(mask, (*leading, 3, 6)))
    for row in each_of("row", range(3)):
        seen = np.flatnonzero(mask[row])
        alone = attend(q[..., row : row + 1, :], k[..., seen, :], v[..., seen, :])
        check_close("output", out[..., row : row + 1, :], alone, attend.tolerance())


@clause("MASK-FORMULA")
def test_under_a_mask_the_output_equals_the_definition(attend: Attend, draw: Draw) -> None:
    for batch, queries, keys in each_of(
        "batch, queries, keys", [(3, 1, 6), (4, 4, 4), (1, 5, 1), (2, 18, 35), (1, 66, 7), (1, 3, 130)]
    ):
        leading = attend.leading(batch)
        q, k, v = draw.qkv(leading, queries=queries, keys=keys, dv=3, scale=1.5)
        mask = draw.mask(batch, *(1 for _ in leading[1:]), queries, keys)
        bias = additive(mask) + draw.values(*mask.shape)
        for shown in (mask, mask[(0,) * len(leading)], bias, bias[(0,) * len(leading)]):
            if attend.subject.offers("bool-masks" if shown.dtype == np.bool_ else "float-masks"):
                want = scaled_dot_product_attention(q, k, v, shown)
                check_close(f"output under a {shown.dtype} mask {shown.shape}", attend(q, k, v, shown), want,
                            attend.tolerance())  # fmt: skip


@clause("MASK-VALUE-INDEP")
def test_nothing_depends_on_hidden_keys_and_values(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), keys=6)
    hidden = draw.integer(0, 2), draw.integer(3, 5)
    mask = np.ones((*q.shape[:-1], 6), np.bool_)
    mask[..., hidden] = False
    before = attend(q, k, v, mask)
    huge = attend.subject.up_to(1e6)
    for key_scale, value_scale in each_of(
        "key_scale, value_scale", [(1.0, 1.0), (1e3, 1.0), (1.0, huge), (-1e3, -huge)]
    ):
        for row in hidden:
            k[..., row, :] = draw.values(*k.shape[:-2], 4, scale=abs(key_scale)) * np.sign(key_scale)
            v[..., row, :] = draw.values(*v.shape[:-2], 6, scale=abs(value_scale))
        check_close("output", attend(q, k, v, mask), before, attend.tolerance())


@clause("MASK-GRAD-ZERO")
def test_no_gradient_reaches_hidden_keys_and_values(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), keys=6)
    mask = np.ones((*q.shape[:-1], 6), np.bool_)
    mask[..., [1, 4]] = False
    cotangent = draw.values(*q.shape[:-1], 6)
    gradients = attend.vjp(q, k, v, mask, cotangent=cotangent).inputs
    for name in ("k", "v"):
        gradient = gradients[name]
        check(f"no gradient leads from the output to {name}", gradient is not None)
        assert gradient is not None
        check_zero(f"gradient of {name} where it is hidden", gradient[..., [1, 4], :])
        seen = np.abs(gradient[..., [0, 2, 3, 5], :]).max(axis=-1)
        check(f"an allowed row of {name} gets no gradient", bool((seen > 0.0).all()))


@clause("MASK-SOFT-VALUE")
def test_a_hidden_key_stays_hidden_however_good_its_score(attend: Attend, draw: Draw) -> None:
    _check_hidden_at(attend, draw, allowed=-200.0, hidden=200.0)


@clause("MASK-DOMINATES-LEARNED")
def test_a_hidden_key_stays_hidden_at_scores_that_are_learned(attend: Attend, draw: Draw) -> None:
    _check_hidden_at(attend, draw, allowed=-1.5e4, hidden=0.0)


@clause("MASK-DOMINATES")
def test_a_hidden_key_stays_hidden_however_bad_the_allowed_scores(attend: Attend, draw: Draw) -> None:
    _check_hidden_at(attend, draw, allowed=-1e10, hidden=0.0)


@clause("MASK-NO-MUTATE")
def test_the_mask_is_left_as_it_was(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    allowed = draw.mask(*q.shape[:-1], 5)
    for kind, mask in _kinds(attend, allowed):
        after = attend.call(q, k, v, mask, echo=True).arguments["mask"]
        before = attend.subject.bound.mask.form.passed(mask) if kind == "boolean" else mask
        check_equal(f"{kind} mask after the call", after, before)


# --- shapes -----------------------------------------------------------------------------------------------------------


@clause("MASK-BCAST-TT")
def test_a_mask_of_two_dimensions_holds_for_every_element(attend: Attend, draw: Draw) -> None:
    for leading in each_of("leading", attend.ranks((3,), (2, 5), (5, 5))):
        _check_stretched(attend, draw, leading, _crossed(5)[draw.permutation(5)], queries=5)


@clause("MASK-BCAST-1TT")
def test_leading_dimensions_of_one_are_stretched(attend: Attend, draw: Draw) -> None:
    for leading in each_of("leading", attend.ranks((3,), (2, 5))):
        _check_stretched(attend, draw, leading, draw.mask(*(1 for _ in leading), 3, 5))


@clause("MASK-BCAST-PERBATCH")
def test_each_batch_element_has_its_own_mask(attend: Attend, draw: Draw) -> None:
    for leading in each_of("leading", attend.ranks((3,), (3, 3), (2, 3))):
        q, k, v = draw.qkv(leading, queries=5, keys=5, scale=1.5)
        mask = draw.mask(leading[0], *(1 for _ in leading[1:]), 5, 5)
        out = attend(q, k, v, mask)
        for element in range(leading[0]):
            own = slice(element, element + 1)
            alone = attend(q[own], k[own], v[own], mask[element].reshape(5, 5))
            check_close(f"output of element {element}", out[own], alone, attend.tolerance())


@clause("MASK-BCAST-THREE")
def test_three_axes_of_a_mask_are_read_the_same_way_at_all_sizes(attend: Attend, draw: Draw) -> None:
    mask = draw.mask(2, 5, 5)
    sequences, heads = (_accepts(attend, draw, leading, mask) for leading in ((2, 3), (3, 2)))
    sentence = "a mask (2, 5, 5) is one for each sequence at B = 2, H = 3, and one for each head at B = 3, H = 2"
    check(sentence, not (sequences and heads))
    q, k, v = draw.qkv((2, 2), queries=5, keys=5, scale=1.5)
    if sequences or heads:
        alike = mask[:, None] if sequences else mask[None]
        under(f"B = 2, H = 2, a mask (2, 5, 5), which is one for each {'sequence' if sequences else 'head'} elsewhere")
        check_close("output", attend(q, k, v, mask), attend(q, k, v, alike), attend.tolerance())


@clause("MASK-BCAST-KEYPAD")
def test_a_mask_with_one_row_hides_keys_from_all_queries(attend: Attend, draw: Draw) -> None:
    for leading in each_of("leading", attend.ranks((4,), (4, 3), (4, 4))):
        _check_stretched(attend, draw, leading, draw.mask(leading[0], *(1 for _ in leading[1:]), 1, 4), keys=4)


@clause("MASK-KEYS-NOT-QUERIES")
def test_a_hidden_key_still_asks_as_a_query(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    q, k, v = draw.qkv(leading, queries=5, keys=5)
    mask = np.broadcast_to(np.arange(5) < 3, (*leading, 1, 5)).copy()
    alone = attend(q, k[..., :3, :], v[..., :3, :])
    check_close("output", attend(q, k, v, mask), alone, attend.tolerance())


# --- rows that see nothing --------------------------------------------------------------------------------------------


@clause("MASK-FULLROW-LOCAL")
def test_a_query_that_sees_no_key_leaves_the_others_alone(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    mask = np.broadcast_to(draw.mask(3, 5), (*q.shape[:-1], 5)).copy()
    before = attend(q, k, v, mask)
    mask[..., 1, :] = False
    after = attend(q, k, v, mask)
    check_close("outputs of the other queries", after[..., [0, 2], :], before[..., [0, 2], :], attend.tolerance())


@clause("MASK-NOTHING")
def test_a_mask_that_allows_nothing_is_not_taken_for_none(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    some, none = np.ones((*q.shape[:-1], 5), bool), np.zeros((*q.shape[:-1], 5), bool)
    some[..., 1, :] = False
    for (kind, beside), (_, alone) in zip(_kinds(attend, some), _kinds(attend, none), strict=True):
        under(f"a {kind} mask")
        want, got = (attend(q, k, v, mask)[..., 1, :] for mask in (beside, alone))
        label = "the output of a query, where no query sees any key,"
        check_nothing_shown(label, want, got, attend(q, k, v)[..., 1, :], attend.tolerance())


@clause("MASK-FULLROW-FINITE")
def test_a_query_that_sees_no_key_gets_zeros_or_the_mean(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    allowed = draw.mask(*q.shape[:-1], 5)
    allowed[..., 1, :] = False
    for kind, mask in _kinds(attend, allowed):
        under(f"a {kind} mask")
        row = attend(q, k, v, mask)[..., 1, :]
        check_finite("its output", row)
        mean, room = v.mean(axis=-2), attend.tolerance() * float(np.abs(v).max())
        away = min(float(np.abs(row).max()), float(np.abs(row - mean).max()))
        check(f"its output differs by {away:.3g} from 0 and from the mean of all values", away <= room)
        if attend.subject.offers("gradients"):
            gradients = attend.vjp(q, k, v, mask, cotangent=draw.values(*q.shape[:-1], 6)).inputs
            for name, gradient in gradients.items():
                check_finite(f"gradient of {name}", np.zeros(1) if gradient is None else gradient)


@clause("MASK-LEFT-PAD")
def test_padding_on_the_left_keeps_real_rows_and_everything_finite(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    q, k, v = draw.qkv(leading, queries=6, keys=6)
    mask = np.broadcast_to(causal_mask(6) & (np.arange(6) >= 2), (*leading, 6, 6)).copy()
    out = attend(q, k, v, mask)
    check_finite("output", out)
    alone = attend(q[..., 2:, :], k[..., 2:, :], v[..., 2:, :], mask[..., 2:, 2:])
    check_close("rows of real tokens", out[..., 2:, :], alone, attend.tolerance())


# --- causal and padding masks -----------------------------------------------------------------------------------------


@clause("MASK-CAUSAL-TRIANGLE")
def test_a_query_weighs_itself_and_what_came_before(attend: Attend, draw: Draw) -> None:
    for length in each_of("length", [1, 2, 5]):
        q, k, _ = draw.qkv(attend.leading(), queries=length, keys=length)
        weights = attend.weights(q, k, causal_mask(length))
        _check_seen(weights, np.broadcast_to(causal_mask(length), weights.shape))


@clause("MASK-CAUSAL-GOLDEN")
def test_the_handouts_example_comes_out_under_a_causal_mask(
    attend: Attend, goldens: Callable[[str], list[Golden]]
) -> None:
    for golden in goldens("MASK-CAUSAL-GOLDEN"):
        under(golden.title)
        check_close("output", *attend.replay(golden), attend.tolerance())


@clause("MASK-CAUSAL-LAST-ROW")
def test_the_last_query_loses_nothing_and_the_first_all_but_itself(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5)
    out = attend(q, k, v, causal_mask(5))
    check_close("last row", out[..., -1, :], attend(q, k, v)[..., -1, :], attend.tolerance())
    check_close("first row", out[..., 0, :], v[..., 0, :], attend.tolerance())


@clause("MASK-CAUSAL-OFFSET")
def test_the_last_queries_alone_get_what_they_get_among_all(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=7, keys=7)
    full = attend(q, k, v, causal_mask(7))
    for queries in each_of("queries", [3, 1]):
        out = attend(q[..., -queries:, :], k, v, causal_mask(queries, 7))
        check_close("output", out, full[..., -queries:, :], attend.tolerance())


@clause("MASK-DIAG-IDENTITY")
def test_whoever_sees_only_itself_keeps_its_value(
    attend: Attend, draw: Draw, goldens: Callable[[str], list[Golden]]
) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5)
    check_close("output", attend(q, k, v, np.eye(5, dtype=np.bool_)), v, attend.tolerance())
    for golden in goldens("MASK-DIAG-IDENTITY"):
        under(golden.title)
        check_close("output", *attend.replay(golden), attend.tolerance())


@clause("MASK-PAD-INVARIANCE")
def test_padding_changes_nothing_for_real_tokens(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    q, k, v = draw.qkv(leading, queries=9, keys=9)
    alone = attend(q[..., :5, :], k[..., :5, :], v[..., :5, :])
    for length, scale in each_of("length, scale", [(6, 1.0), (9, 1.0), (9, 100.0)]):
        content = np.where(np.arange(length) < 5, 1.0, scale)[:, None]
        mask = np.broadcast_to(np.arange(length) < 5, (*leading, 1, length)).copy()
        padded_q, padded_k, padded_v = (part[..., :length, :] * content for part in (q, k, v))
        out = attend(padded_q, padded_k, padded_v, mask)
        check_close("outputs of real tokens", out[..., :5, :], alone, attend.tolerance())


# --- how the above is measured ----------------------------------------------------------------------------------------


def _kinds(attend: Attend, allowed: Array) -> Iterator[tuple[str, Array]]:
    """Yield a mask in each kind that the implementation takes."""
    if attend.subject.offers("bool-masks"):
        yield "boolean", allowed
    if attend.subject.offers("float-masks"):
        yield "float", additive(allowed)


def _accepts(attend: Attend, draw: Draw, leading: tuple[int, ...], mask: Array) -> bool:
    q, k, v = draw.qkv(leading, queries=mask.shape[-2], keys=mask.shape[-1])
    accepted = []
    with refusing():
        accepted.append(attend(q, k, v, mask))
    return bool(accepted)


def _checkered(length: int) -> Array:
    """Return a symmetric mask, with something allowed and something hidden in each row."""
    return np.asarray(np.add.outer(np.arange(length), np.arange(length)) % 2 == 0)


def _crossed(length: int) -> Array:
    """Return a mask with something allowed and something hidden in each row and each column."""
    return np.asarray(np.subtract.outer(np.arange(length), np.arange(length)) % length % 2 == 0)


def _check_seen(weights: Array, allowed: Array) -> None:
    """Check that exactly the allowed keys have weight."""
    check_hidden("weights, of hidden keys", weights, allowed, at_most=1e-6)
    least = np.where(allowed, weights, np.inf).min()
    check(f"an allowed key has weight {least:.3g}, expected more than 0", bool(least > 0.0))


def _check_stretched(
    attend: Attend, draw: Draw, leading: tuple[int, ...], mask: Array, *, queries: int = 3, keys: int = 5
) -> None:
    """Check that a mask acts like the same one written out in full."""
    q, k, v = draw.qkv(leading, queries=queries, keys=keys, scale=1.5)
    full = np.broadcast_to(mask, (*leading, queries, keys)).copy()
    out = attend(q, k, v, mask)
    check_shape("output", out, (*leading, queries, v.shape[-1]))
    check_close(f"output under a mask {mask.shape}", out, attend(q, k, v, full), attend.tolerance())


def _check_hidden_at(attend: Attend, draw: Draw, *, allowed: float, hidden: float) -> None:
    """Check that hidden keys have no weight at given scores: q kᵀ / √4, with q of length 1 along the first feature."""
    leading = attend.leading()
    length = max(abs(allowed), abs(hidden)) ** 0.5
    q, k = np.zeros((*leading, 3, 4)), np.zeros((*leading, 5, 4))
    q[..., 0] = length
    mask = draw.mask(1, 5)[0]
    k[..., 0] = np.where(mask, allowed, hidden) * 2.0 / length
    full = np.broadcast_to(mask, (*leading, 3, 5)).copy()
    check_hidden(f"weights, of keys hidden at a score of {hidden:g}", attend.weights(q, k, full), full, at_most=1e-6)
