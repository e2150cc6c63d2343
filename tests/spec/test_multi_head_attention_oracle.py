"""The oracle of multi-head attention compared with loops over plain numbers, and with values computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformkit.spec.multi_head_attention import merge_heads, multi_head_attention, split_heads
from conformkit.spec.variants import CANONICAL


def product(rows, x, bias=None):
    return [
        sum(w * value for w, value in zip(row, x, strict=True)) + (0.0 if bias is None else bias[i])
        for i, row in enumerate(rows)
    ]


def by_loops(weights, x, *, heads, kv_heads, causal):
    """One sequence, x (T, D) as lists: every head, every query and every key in turn."""
    q, k, v = ([product(weights[f"{n}.weight"], p, weights.get(f"{n}.bias")) for p in x] for n in "qkv")
    width = len(q[0]) // heads
    out = []
    for t in range(len(x)):
        merged = []
        for head in range(heads):
            own = head // (heads // kv_heads)
            query = q[t][head * width : (head + 1) * width]
            seen = range(t + 1 if causal else len(x))
            keys = [k[j][own * width : (own + 1) * width] for j in seen]
            exponentials = [
                math.exp(sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(width)) for key in keys
            ]
            for c in range(width):
                values = [v[j][own * width + c] for j in seen]
                merged.append(sum(e * u for e, u in zip(exponentials, values, strict=True)) / sum(exponentials))
        out.append(
            product(weights["out.weight"], merged, weights.get("out.bias")) if "out.weight" in weights else merged
        )
    return out


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_the_oracle_equals_a_loop_over_heads_queries_and_keys(data):
    kv_heads, served, width, length = (
        data.draw(st.integers(1, 3), name) for name in ("kv heads", "served", "width", "T")
    )
    causal, bias, projected = (data.draw(st.booleans(), name) for name in ("causal", "bias", "output projection"))
    heads = kv_heads * served
    model = heads * width if not projected else data.draw(st.integers(1, 7), "d_model")
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1), "seed"))
    shapes = {"q": (heads * width, model), "k": (kv_heads * width, model), "v": (kv_heads * width, model)}
    if projected:
        shapes["out"] = (model, heads * width)
    weights = {f"{name}.weight": random.normal(size=shape) for name, shape in shapes.items()}
    if bias:
        weights |= {f"{name}.bias": random.normal(size=shape[0]) for name, shape in shapes.items()}
    x = random.normal(size=(2, length, model))
    numbers = {name: array.tolist() for name, array in weights.items()}
    want = [by_loops(numbers, one.tolist(), heads=heads, kv_heads=kv_heads, causal=causal) for one in x]
    variant = CANONICAL.but(output_projection=projected)
    got = multi_head_attention(weights, x, num_heads=heads, kv_heads=kv_heads, causal=causal, variant=variant)
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("heads", "causal", "want"),
    [
        (2, False, [[0.802224, 1.197776, 0.744765, 2.013959], [0.598888, 1.604448, 1.510470, 0.993020],
                    [0.751745, 1.503490, 1.0, 1.333333]]),
        (2, True, [[1.0, 0.0, 0.0, 4.0], [0.330238, 1.339523, 2.009285, 1.320954],
                   [0.751745, 1.503490, 1.0, 1.333333]]),
        (1, False, [[0.813676, 0.987039, 0.558971, 2.025922], [0.493520, 1.627353, 1.519441, 0.745295],
                    [0.725931, 1.451863, 0.822206, 1.096274]]),
        (4, False, [[0.844638, 1.333333, 1.0, 2.304468], [0.666667, 1.689275, 1.728351, 1.333333],
                    [0.844638, 1.689275, 1.0, 1.333333]]),
    ],
    ids=["two-heads", "two-heads-causal", "one-head", "four-heads"],
)  # fmt: skip
def test_three_tokens_of_width_four_by_hand(heads, causal, want):
    weights = {f"{name}.weight": np.eye(4) for name in "qkv"} | {"out.weight": np.diag([1.0, 2.0, 3.0, 4.0])}
    x = np.array([[[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]]])
    got = multi_head_attention(weights, x, num_heads=heads, kv_heads=heads, causal=causal, variant=CANONICAL)
    np.testing.assert_allclose(got, [want], atol=5.1e-7)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 4))
def test_merging_undoes_the_split_and_a_head_owns_consecutive_features(batch, length, heads, width):
    x = np.arange(batch * length * heads * width, dtype=np.float64).reshape(batch, length, heads * width)
    split = split_heads(x, heads)
    for head in range(heads):
        np.testing.assert_array_equal(split[:, head], x[..., head * width : (head + 1) * width])
    np.testing.assert_array_equal(merge_heads(split), x)


def test_rotary_positions_turn_queries_and_keys_but_not_values():
    random = np.random.default_rng(0)
    weights = {f"{name}.weight": random.normal(size=(4, 4)) for name in ("q", "k", "v", "out")}
    x = random.normal(size=(1, 3, 4))
    options = {"num_heads": 2, "kv_heads": 2, "causal": True}
    plain = multi_head_attention(weights, x, variant=CANONICAL, **options)
    turned = multi_head_attention(weights, x, variant=CANONICAL.but(positions="rotary"), **options)
    np.testing.assert_allclose(turned[:, 0], plain[:, 0], rtol=1e-12)
    assert np.abs(turned[:, 1:] - plain[:, 1:]).min() > 1e-4
    still = weights | {"q.weight": np.zeros((4, 4))}
    np.testing.assert_allclose(
        multi_head_attention(still, x, variant=CANONICAL.but(positions="rotary"), **options),
        multi_head_attention(still, x, variant=CANONICAL, **options),
        rtol=1e-12,
    )
