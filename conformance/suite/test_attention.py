"""Clauses of spec/attention.md."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformkit.conformance.assertions.checks import (
    check,
    check_close,
    check_equal,
    check_finite,
    check_repeated,
    check_shape,
    check_zero,
    each_of,
    refusing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.binding.sizes import within
from conformkit.conformance.driver.client.beside import beside
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.definition_at_sizes import multiplications
from conformkit.conformance.evidence.differences import Point, check_gradients
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import Golden
from conformkit.spec.arrays import Array
from conformkit.spec.attention import attention_weights, scaled_dot_product_attention
from conformkit.spec.tolerances import GRADIENT, STEP

_LARGE = 300.0
"""A factor with which exponentials of scores overflow."""


# --- shapes -----------------------------------------------------------------------------------------------------------


@clause("SDPA-OUT-SHAPE")
def test_the_output_has_a_row_per_query_as_wide_as_a_value(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    for lengths in each_of(
        "lengths",
        [
            {"queries": 5, "keys": 5, "dk": 4, "dv": 6},
            {"queries": 4, "keys": 4, "dk": 7, "dv": 3},
            {"queries": 3, "keys": 3, "dk": 4, "dv": 1},
            {"queries": 3, "keys": 3, "dk": 1, "dv": 5},
        ],
    ):
        out = attend(*draw.qkv(leading, **lengths))
        check_shape("output", out, (*leading, lengths["queries"], lengths["dv"]))
        check_finite("output", out)


@clause("SDPA-TQ-NE-TK")
def test_queries_and_keys_may_differ_in_number(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    for lengths in each_of(
        "lengths", [{"queries": 3, "keys": 7}, {"queries": 7, "keys": 3}, {"queries": 1, "keys": 5}]
    ):
        out = attend(*draw.qkv(leading, dk=4, dv=6, **lengths))
        check_shape("output", out, (*leading, lengths["queries"], 6))
        check_finite("output", out)


@clause("SDPA-2D")
def test_inputs_without_a_batch_give_the_rows_of_a_batch_of_one(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv((1,), queries=5, keys=5)
    out = attend(q[0], k[0], v[0])
    check_shape("output without a batch", out, (5, 6))
    check_close("output without a batch", out, attend(q, k, v)[0], attend.tolerance())


@clause("SDPA-LEADING")
def test_leading_dimensions_give_what_one_flat_batch_gives(attend: Attend, draw: Draw) -> None:
    for leading in each_of("leading", [(2, 3), (3, 3), (2, 1, 3), (1, 2, 2, 2)]):
        q, k, v = draw.qkv(leading, queries=5, keys=5, scale=1.5)
        flat = attend(*(part.reshape(-1, *part.shape[-2:]) for part in (q, k, v)))
        out = attend(q, k, v)
        check_shape("output", out, (*leading, 5, 6))
        check_close("output", out, flat.reshape(out.shape), attend.tolerance())


@clause("SDPA-EMPTY")
def test_nothing_in_gives_nothing_out_in_the_usual_shape(attend: Attend, draw: Draw) -> None:
    for leading, queries in each_of("leading, queries", [(attend.leading(0), 3), (attend.leading(), 0)]):
        out = attend(*draw.qkv(leading, queries=queries, keys=5))
        check_shape("output", out, (*leading, queries, 6))


@clause("SDPA-RETURNS")
def test_returned_weights_have_a_row_per_query_and_a_column_per_key(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    for queries, keys in each_of("queries, keys", [(3, 7), (7, 3), (1, 5)]):
        returned = attend.call(*draw.qkv(leading, queries=queries, keys=keys))
        check_shape("output", returned.out, (*leading, queries, 6))
        check_shape("returned weights", _weights(returned.extra), (*leading, queries, keys))


# --- the same again ---------------------------------------------------------------------------------------------------


@clause("SDPA-DROPOUT-EVAL")
def test_equal_calls_give_equal_results(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5)
    first = attend(q, k, v, seed=1)
    for seed in (1, 2, 3):
        check_repeated("output of an equal call", attend(q, k, v, seed=seed), first)


@clause("SDPA-NO-MUTATE")
def test_the_inputs_are_left_as_they_were(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5)
    after = attend.call(q, k, v, echo=True).arguments
    for name, before in {"q": q, "k": k, "v": v}.items():
        check_equal(f"{name} after the call", after[name], before)


@clause("SDPA-NONCONTIG")
def test_views_with_gaps_give_the_same_result(attend: Attend, draw: Draw) -> None:
    for leading in each_of("leading", [attend.leading(), *attend.ranks((2, 3))]):
        q, k, v = draw.qkv(leading, queries=5, keys=5)
        check_close("output for strided inputs", attend(q, k, v, strided=True), attend(q, k, v), attend.tolerance())


@clause("SDPA-LEADING-BCAST")
def test_leading_extents_of_one_are_stretched_or_refused(attend: Attend, draw: Draw) -> None:
    for ours, theirs in each_of("ours, theirs", [((2, 3), (2, 1)), ((1, 3), (2, 3)), ((3, 3), (1, 3))]):
        q = draw.values(*ours, 3, 4)
        k, v = draw.values(*theirs, 5, 4), draw.values(*theirs, 5, 6)
        leading = np.broadcast_shapes(ours, theirs)
        full = attend(*(np.broadcast_to(part, (*leading, *part.shape[-2:])).copy() for part in (q, k, v)))
        out = full
        with refusing():
            out = attend(q, k, v)
        check_close("output", out, full, attend.tolerance())


# --- weights ----------------------------------------------------------------------------------------------------------


@clause("SDPA-WEIGHTS-RANGE")
def test_weights_lie_between_0_and_1(attend: Attend, draw: Draw) -> None:
    for scale in each_of("scale", [1.0, 3.0]):
        weights = _shown(attend, draw, attend.leading(), scale)
        check_finite("weights", weights)
        check_zero("what is below 0 in the weights", np.minimum(weights, 0.0))
        check_zero("what is above 1 in the weights", np.maximum(weights - 1.0, 0.0), at_most=attend.tolerance())


@clause("SDPA-SOFTMAX-KEYS")
def test_the_keys_of_each_query_share_the_same_total(attend: Attend, draw: Draw) -> None:
    for leading in each_of("leading", attend.ranks((3,), (2, 3))):
        totals = _shown(attend, draw, leading).sum(axis=-1)
        want = np.full_like(totals, totals.flat[0])
        check_close("sum over keys (as for the first query)", totals, want, attend.tolerance(10))


@clause("SDPA-WEIGHTS-SUM")
def test_the_weights_of_a_query_add_up_to_1(attend: Attend, draw: Draw) -> None:
    for scale in each_of("scale", [1.0, 3.0]):
        totals = _shown(attend, draw, attend.leading(), scale).sum(axis=-1)
        check_close("sum over keys", totals, np.ones_like(totals), attend.tolerance())


@clause("SDPA-WEIGHTS-CONSISTENT")
def test_returned_weights_are_the_ones_that_made_the_output(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=3, keys=5)
    for how, mask in {"no mask": None, "a mask": draw.mask(*q.shape[:-1], 5)}.items():
        if mask is None or attend.subject.offers("masks"):
            under(how)
            returned = attend.call(q, k, v, mask)
            weights = _weights(returned.extra)
            check_shape("returned weights", weights, (*q.shape[:-1], 5))
            check_close("returned weights times values", weights @ v, returned.out, attend.tolerance(2))


# --- scale ------------------------------------------------------------------------------------------------------------


@clause("SDPA-SCALE-DIM")
def test_the_divisor_does_not_change_with_lengths_value_width_or_batch(attend: Attend, draw: Draw) -> None:
    pair, one = _telling_pair(draw, 4), attend.leading(1)
    base = _divisor(attend, draw, pair, one, queries=2, keys=2)
    lengths = [(one, 2, 7, 2), (one, 6, 2, 2), (one, 5, 5, 2), (one, 2, 2, 9), (attend.leading(5), 2, 2, 2)]
    for leading, queries, keys, dv in [*lengths, *((ranked, 3, 4, 2) for ranked in attend.ranks((1, 6)))]:
        under(f"leading dimensions {leading}, Tq {queries}, Tk {keys}, dv {dv}; before {one}, 2, 2, 2")
        got = _divisor(attend, draw, pair, leading, queries=queries, keys=keys, dv=dv)
        allowed = attend.tolerance(2 if attend.subject.half else 10)
        check_close("the divisor of the scores", got, base, allowed)


@clause("SDPA-SCALE")
def test_scores_are_divided_by_the_square_root_of_the_key_width(attend: Attend, draw: Draw) -> None:
    for width in (1, 4, 16, 64, 3, 11, 130):
        under(f"dk = {width}")
        got = _divisor(attend, draw, _telling_pair(draw, width), attend.leading(1), queries=3, keys=3)
        allowed = attend.tolerance(2 if attend.subject.half else 10)
        check_close("the divisor of the scores", got, np.sqrt(width), allowed)


# --- numbers to follow by hand ----------------------------------------------------------------------------------------


@clause("SDPA-GOLDEN-TINY")
def test_the_handouts_three_tokens_come_out(attend: Attend, goldens: Callable[[str], list[Golden]]) -> None:
    for golden in goldens("SDPA-GOLDEN-TINY"):
        under(golden.title)
        check_close("output", *attend.replay(golden), attend.tolerance())


@clause("SDPA-GOLDEN-2X2")
def test_two_orthogonal_tokens_prefer_their_own_values(attend: Attend, goldens: Callable[[str], list[Golden]]) -> None:
    for golden in goldens("SDPA-GOLDEN-2X2"):
        under(golden.title)
        check_close("output", *attend.replay(golden), attend.tolerance())


# --- all together -----------------------------------------------------------------------------------------------------


@clause("SDPA-FORMULA")
def test_the_output_equals_the_definition(attend: Attend, draw: Draw) -> None:
    for queries, keys, dk, dv, scale in each_of(
        "queries, keys, dk, dv, scale",
        [
            (5, 5, 4, 6, 1.0),
            (6, 6, 5, 5, 1.0),  # equal sizes hide a residual and a transposed value
            (4, 4, 1, 3, 1.7),
            (6, 3, 17, 5, 1.0),
            (3, 7, 5, 1, 1.7),
            (1, 9, 8, 2, 1.3),
            (7, 1, 2, 13, 1.0),
            (17, 34, 3, 2, 1.0),  # beyond blocks of 16, 32, 64 and 128, the usual chunk sizes
            (130, 66, 2, 3, 1.3),
            (66, 130, 4, 2, 1.0),
        ],
    ):
        leading = attend.leading({5: 3, 4: 34}.get(queries, 2) if max(queries, keys) < 20 else 1)
        q, k, v = draw.qkv(leading, queries=queries, keys=keys, dk=dk, dv=dv, scale=scale)
        check_close("output", attend(q, k, v), attend.expected(q, k, v), attend.tolerance())


@clause("SDPA-GRAD")
def test_gradients_of_q_k_and_v_are_those_of_the_formula(attend: Attend, draw: Draw) -> None:
    for batch, queries, keys in each_of("batch, queries, keys", [(2, 3, 5), (1, 4, 4), (5, 2, 3), (1, 34, 35)]):
        q, k, v = draw.qkv(attend.leading(batch), queries=queries, keys=keys)
        cotangent = draw.values(*q.shape[:-1], v.shape[-1])
        got = attend.vjp(q, k, v, cotangent=cotangent)
        check_shape("output", got.out, cotangent.shape)
        for name, gradient in got.inputs.items():
            check(f"no gradient from the output reaches {name}", gradient is not None)
        if _is_formula(got.out, q, k, v, attend.tolerance()):
            for name, want in _analytic(q, k, v, cotangent).items():
                check_close(f"gradient of {name}", np.asarray(got.inputs[name]), want, attend.tolerance(2))
        elif not attend.subject.half:  # other clauses report a wrong output
            how = {"step": STEP[attend.subject.precision], "tolerance": GRADIENT[attend.subject.precision]}
            check_gradients("attention", Point.of(attend.instance, (q, k, v)), draw, **how)


@clause("SDPA-SIZES")
def test_the_output_equals_the_definition_at_every_size(attend: Attend, draw: Draw) -> None:
    def check(sizes: Case) -> None:
        own, leading = draw.at(sizes), attend.leading(sizes["batch"])
        lengths = {"queries": sizes["tokens"], "keys": sizes["keys"], "dk": sizes["d_k"], "dv": sizes["d_v"]}
        q, k, v = own.qkv(leading, **lengths)
        compare("output", q, k, v)
        if not attend.subject.half:
            large = _LARGE * q
            got, want = beside(lambda: attend(large, k, v), lambda: scaled_dot_product_attention(large, k, v))
            check_close("output for scores in the hundreds", got, want, attend.tolerance(10))
        if attend.subject.offers("masks"):
            for kind, queries in (("a mask", sizes["tokens"]), ("a mask of one row", 1)):
                compare(f"output, with {kind},", q, k, v, own.mask(*leading, queries, sizes["keys"]))

    def compare(label: str, *inputs: Array) -> None:
        got, want = beside(lambda: attend(*inputs), lambda: attend.expected(*inputs))
        check_close(label, got, want, attend.tolerance())

    def nearest(sizes: Case) -> dict[str, int]:
        return within(sizes, attend.subject.bound.limits)

    check_at_sizes(draw, check, multiplications, nearest, after="SDPA-FORMULA", renew=attend.renew)


# --- how the above is measured ----------------------------------------------------------------------------------------


def _shown(attend: Attend, draw: Draw, leading: tuple[int, ...], scale: float = 1.5) -> Array:
    """Return the weights of 5 queries over 5 drawn keys."""
    q, k, _ = draw.qkv(leading, queries=5, keys=5, scale=scale)
    return attend.weights(q, k)


def _weights(returned: Array | None) -> Array:
    check("no weights are returned", returned is not None)
    assert returned is not None
    return returned


def _telling_pair(draw: Draw, dk: int) -> tuple[Array, Array]:
    """Return a query (dk,) and two keys (2, dk) whose scores, divided by √dk, differ by about 1.2."""
    query, key = draw.values(dk) + 0.1, draw.values(dk, scale=0.5)
    ahead = key + 1.2 * np.sqrt(dk) * query / (query @ query)
    return query, np.stack([key, ahead]).astype(np.float32).astype(np.float64)


def _divisor(
    attend: Attend,
    draw: Draw,
    pair: tuple[Array, Array],
    leading: tuple[int, ...],
    *,
    queries: int,
    keys: int,
    dv: int = 2,
) -> Array:
    """Return the divisor of the last query's scores: their difference over that of the weights' logarithms."""
    query, two = pair
    q, k, v = draw.qkv(leading, queries=queries, keys=keys, dk=len(query), dv=dv, scale=0.5)
    q[..., -1, :], k[..., :2, :], v[..., :2] = query, two, np.eye(keys, 2)
    weights = attend(q, k, v)[..., -1, :2].reshape(-1, 2)[0]
    check("one of two similar keys has no weight", bool((weights > 0.0).all()))
    apart = np.log(weights[1] / weights[0])
    check("both keys have the same weight, whatever their scores", bool(apart != 0.0))
    check("the key with the higher score does not have more weight", bool(apart > 0.0))
    return np.asarray(query @ (two[1] - two[0]) / apart)


def _is_formula(out: Array, q: Array, k: Array, v: Array, tolerance: float) -> bool:
    want = scaled_dot_product_attention(q, k, v)
    return bool((np.abs(out - want) <= tolerance * np.abs(want).max()).all())


def _analytic(q: Array, k: Array, v: Array, cotangent: Array) -> dict[str, Array]:
    """Return the gradients of the sum of cotangent · output."""
    weights = attention_weights(q, k)
    to_weights = cotangent @ np.swapaxes(v, -1, -2)
    to_scores = weights * (to_weights - (weights * to_weights).sum(axis=-1, keepdims=True)) / np.sqrt(q.shape[-1])
    return {"q": to_scores @ k, "k": np.swapaxes(to_scores, -1, -2) @ q, "v": np.swapaxes(weights, -1, -2) @ cotangent}
