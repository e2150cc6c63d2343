"""The oracle of attention compared with loops over plain numbers, and with values computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformkit.spec.attention import attention_weights, scaled_dot_product_attention, softmax

SIZES = st.integers(1, 5)


def rows_of_weights(q, k, allowed=None, bias=None):
    """The weights of each query over all keys, key by key; 0 where a query sees none."""
    width = len(q[0])
    found = []
    for t, query in enumerate(q):
        seen = [j for j in range(len(k)) if allowed is None or allowed[t][j]]
        scores = {j: sum(a * b for a, b in zip(query, k[j], strict=True)) / math.sqrt(width) for j in seen}
        if bias is not None:
            scores = {j: score + bias[t][j] for j, score in scores.items() if bias[t][j] != -math.inf}
        highest = max(scores.values(), default=0.0)
        total = sum(math.exp(score - highest) for score in scores.values())
        found.append([math.exp(scores[j] - highest) / total if j in scores else 0.0 for j in range(len(k))])
    return found


def mixed(weights, v):
    return [[sum(w * value[c] for w, value in zip(row, v, strict=True)) for c in range(len(v[0]))] for row in weights]


@settings(max_examples=25, deadline=None)
@given(SIZES, SIZES, SIZES, SIZES, st.integers(0, 2**32 - 1))
def test_the_oracle_equals_a_loop_over_queries_and_keys(queries, keys, dk, dv, seed):
    random = np.random.default_rng(seed)
    q, k, v = (random.normal(0.0, 2.0, shape) for shape in ((queries, dk), (keys, dk), (keys, dv)))
    allowed, bias = random.random((queries, keys)) < 0.6, random.normal(0.0, 2.0, (queries, keys))
    hidden = np.where(allowed, bias, -np.inf)
    numbers = [array.tolist() for array in (q, k, v, allowed, hidden)]
    for mask, options in ((None, {}), (allowed, {"allowed": numbers[3]}), (hidden, {"bias": numbers[4]})):
        weights = rows_of_weights(numbers[0], numbers[1], **options)
        np.testing.assert_allclose(attention_weights(q, k, mask), weights, rtol=1e-12, atol=1e-15)
        want = mixed(weights, numbers[2])
        np.testing.assert_allclose(scaled_dot_product_attention(q, k, v, mask), want, rtol=1e-12, atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(SIZES, SIZES, st.integers(0, 2**32 - 1))
def test_leading_dimensions_are_so_many_matrices(batch, heads, seed):
    random = np.random.default_rng(seed)
    q, k, v = (random.normal(size=(batch, heads, *shape)) for shape in ((3, 4), (5, 4), (5, 2)))
    mask = random.random((batch, 1, 3, 5)) < 0.6
    whole = scaled_dot_product_attention(q, k, v, mask)
    for b in range(batch):
        for h in range(heads):
            weights = rows_of_weights(q[b, h].tolist(), k[b, h].tolist(), allowed=mask[b, 0].tolist())
            np.testing.assert_allclose(whole[b, h], mixed(weights, v[b, h].tolist()), rtol=1e-12, atol=1e-12)


def test_two_orthogonal_tokens_weigh_their_own_value_by_hand():
    own = 1.0 / (1.0 + math.exp(-1.0 / math.sqrt(2.0)))
    weights = attention_weights(np.eye(2), np.eye(2))
    np.testing.assert_allclose(weights, [[own, 1.0 - own], [1.0 - own, own]], rtol=1e-15)
    assert own == pytest.approx(0.669762, abs=5e-7)


@pytest.mark.parametrize(
    ("scores", "want"),
    [
        ([0.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]),
        ([0.0, math.log(3.0)], [0.25, 0.75]),
        ([100.0, 1.0, 1.0, 1.0], [1.0, 1.0112214926e-43, 1.0112214926e-43, 1.0112214926e-43]),
        ([-1e5, -1e5 - math.log(4.0)], [0.8, 0.2]),
        ([3.0, -math.inf], [1.0, 0.0]),
        ([-math.inf, -math.inf], [0.0, 0.0]),
    ],
    ids=["equal", "threefold", "far-apart", "far-below-zero", "one-hidden", "all-hidden"],
)
def test_softmax_of_a_row_by_hand(scores, want):
    np.testing.assert_allclose(softmax(np.array([scores])), [want], rtol=1e-9, atol=0.0)


def test_a_query_that_sees_no_key_gives_zeros():
    out = scaled_dot_product_attention(np.ones((2, 3)), np.ones((4, 3)), np.ones((4, 5)), np.array([[False], [True]]))
    np.testing.assert_array_equal(out, [[0.0] * 5, [1.0] * 5])
