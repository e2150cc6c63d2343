"""Clauses of spec/attention_properties.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check_close, check_differs, check_zero, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.masks import causal_mask


@clause("SDPA-V-LINEAR")
def test_the_output_is_linear_in_the_values(attend: Attend, draw: Draw) -> None:
    leading = attend.leading()
    q, k, one = draw.qkv(leading, scale=1.5)
    other = draw.values(*one.shape)
    together = attend(q, k, 2.5 * one - 0.75 * other)
    apart = 2.5 * attend(q, k, one) - 0.75 * attend(q, k, other)
    check_close("output for 2.5 v₁ - 0.75 v₂", together, apart, attend.tolerance(2))
    check_differs("output when the values change", attend(q, k, one), attend(q, k, other))


@clause("SDPA-V-SHIFT")
def test_a_constant_added_to_all_values_is_added_to_the_output(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5)
    shift, causal = draw.values(6, scale=5.0), np.broadcast_to(causal_mask(5), (*q.shape[:-1], 5))
    for how, mask in {"no mask": None, "a causal mask": causal}.items():
        if mask is None or attend.subject.offers("masks"):
            under(how)
            check_close("output", attend(q, k, v + shift, mask), attend(q, k, v, mask) + shift, attend.tolerance(2))


@clause("SDPA-K-SHIFT")
def test_a_vector_added_to_all_keys_changes_nothing(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    before = attend(q, k, v)
    toward = q.mean(axis=-2, keepdims=True)
    for moved in (1.0, 50.0):
        under(f"scores moved by up to {moved:g}")
        shift = toward / np.abs(q @ np.swapaxes(toward, -1, -2)).max() * np.sqrt(4) * moved
        # The scores grow to `moved` and are rounded in proportion to it.
        check_close("output", attend(q, k + shift, v), before, attend.tolerance(2) * moved)


@clause("SDPA-CONVEX")
def test_the_output_stays_within_the_range_of_the_values(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), scale=2.0)
    v = v - v.mean(axis=-2, keepdims=True)  # around 0: SDPA-V-SHIFT judges whether weights add up to 1
    low, high = v.min(axis=-2, keepdims=True), v.max(axis=-2, keepdims=True)
    room = attend.tolerance() * float(np.abs(v).max())
    for how, mask in {"no mask": None, "a mask": draw.mask(*q.shape[:-1], 5)}.items():
        if mask is None or attend.subject.offers("masks"):
            under(how)
            out = attend(q, k, v, mask)
            check_zero("what is below the least value", np.minimum(out - low, 0.0), at_most=room)
            check_zero("what is above the greatest value", np.maximum(out - high, 0.0), at_most=room)


@clause("SDPA-MEAN-EXACT")
def test_equal_values_come_back_as_they_are(attend: Attend, draw: Draw) -> None:
    for scale in each_of("scale", [0.0, 1.0, 5.0]):
        q, k, v = draw.qkv(attend.leading(), scale=scale)
        same = np.repeat(v[..., :1, :], 5, axis=-2)
        check_close("output", attend(q, k, same), same[..., :3, :], attend.tolerance())


@clause("SDPA-ZERO-Q")
def test_a_query_of_zeros_gets_the_mean_of_all_values(attend: Attend, draw: Draw) -> None:
    for queries, keys in each_of("queries, keys", [(5, 5), (3, 7)]):
        q, k, v = draw.qkv(attend.leading(), queries=queries, keys=keys)
        mean = np.repeat(v.mean(axis=-2, keepdims=True), queries, axis=-2)
        check_close("output for queries of zeros", attend(0.0 * q, k, v), mean, attend.tolerance())


@clause("SDPA-SINGLE-KEY")
def test_with_one_key_every_query_gets_its_value(attend: Attend, draw: Draw) -> None:
    for batch, queries, dv in each_of("batch, queries, dv", [(2, 4, 6), (1, 1, 5), (3, 1, 1), (1, 4, 1)]):
        q, k, v = draw.qkv(attend.leading(batch), queries=queries, keys=1, dv=dv, scale=3.0)
        check_close("output", attend(q, k, v), np.repeat(v, queries, axis=-2), attend.tolerance())


@clause("SDPA-SHARP")
def test_a_query_scaled_up_picks_the_value_of_its_best_key(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading())
    ahead = 15 * attend.tolerance() if attend.subject.half else 0.05
    while _lead(q, k) < ahead:
        q, k, v = draw.qkv(attend.leading())
    best = (q @ np.swapaxes(k, -1, -2)).argmax(axis=-1)
    for factor in each_of("factor", [attend.subject.up_to(1e4), attend.subject.up_to(1e6)]):
        out = attend(factor * q, k, v)
        check_close("output", out, np.take_along_axis(v, best[..., None], axis=-2), attend.tolerance())


@clause("SDPA-KEY-PERM")
def test_the_order_of_the_keys_does_not_matter(attend: Attend, draw: Draw) -> None:
    for queries, keys in each_of("queries, keys", [(5, 5), (3, 6)]):
        q, k, v = draw.qkv(attend.leading(), queries=queries, keys=keys, scale=1.5)
        order = draw.permutation(keys)
        got = attend(q, k[..., order, :], v[..., order, :])
        check_close("output with keys in another order", got, attend(q, k, v), attend.tolerance())


@clause("SDPA-DUP-KEYS")
def test_equal_keys_get_equal_weights(attend: Attend, draw: Draw) -> None:
    for scale in each_of("scale", [1.0, 3.0]):
        q, k, _ = draw.qkv(attend.leading(), keys=6, scale=scale)
        k[..., 4, :] = k[..., 1, :]
        weights = attend.weights(q, k)
        check_close("weight of the copy", weights[..., 4], weights[..., 1], attend.tolerance(), scale=1.0)


@clause("SDPA-QUERY-ROWS")
def test_a_query_affects_its_own_output_row_only(attend: Attend, draw: Draw) -> None:
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5, scale=1.5)
    before = attend(q, k, v)
    for row in each_of("row", [1, 2, 4]):
        changed = q.copy()
        changed[..., row, :] = draw.values(*q.shape[:-2], 4, scale=2.0)
        after = attend(changed, k, v)
        others = [t for t in range(5) if t != row]
        check_close("the other rows", after[..., others, :], before[..., others, :], attend.tolerance())
        check_differs(f"row {row}", after[..., row, :], before[..., row, :], at_least=1e-4)


@clause("SDPA-BATCH-INDEP")
def test_batch_elements_do_not_influence_one_another(attend: Attend, draw: Draw) -> None:
    inputs, others = (draw.qkv(attend.leading(4), queries=5, keys=5, scale=scale) for scale in (1.5, 2.0))
    before = attend(*inputs)
    for part, other in zip(inputs, others, strict=True):
        part[1] = other[1]
    after = attend(*inputs)
    check_close("outputs of the other elements", after[[0, 2, 3]], before[[0, 2, 3]], attend.tolerance())
    check_differs("output of the changed element", after[1], before[1], at_least=1e-4)


def _lead(q: Array, k: Array) -> float:
    """Return the smallest lead of a best score over all queries."""
    scores = np.sort(q @ np.swapaxes(k, -1, -2), axis=-1)
    return float((scores[..., -1] - scores[..., -2]).min())
