"""The oracle of single-head self-attention compared with loops over plain numbers, and with values computed by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformkit.spec.self_attention import self_attention

SIZES = st.integers(1, 4)


def by_loops(weights, x, *, causal):
    """One sequence, x (T, D) as lists: every query and every key in turn."""
    rows = {}
    for name in "qkv":
        bias = weights.get(f"{name}.bias")
        rows[name] = [
            [
                sum(w * value for w, value in zip(row, position, strict=True)) + (0.0 if bias is None else bias[i])
                for i, row in enumerate(weights[f"{name}.weight"])
            ]
            for position in x
        ]
    out = []
    for t, query in enumerate(rows["q"]):
        last = t + 1 if causal else len(x)
        scores = [
            sum(a * b for a, b in zip(query, key, strict=True)) / math.sqrt(len(query)) for key in rows["k"][:last]
        ]
        exponentials = [math.exp(score) for score in scores]
        total = sum(exponentials)
        width = len(rows["v"][0])
        out.append([sum(e * rows["v"][j][c] for j, e in enumerate(exponentials)) / total for c in range(width)])
    return out


@settings(max_examples=25, deadline=None)
@given(SIZES, SIZES, SIZES, SIZES, st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_oracle_equals_a_loop_over_queries_and_keys(length, width, d_k, d_v, causal, bias, seed):
    random = np.random.default_rng(seed)
    shapes = {"q": d_k, "k": d_k, "v": d_v}
    weights = {f"{name}.weight": random.normal(size=(rows, width)) for name, rows in shapes.items()}
    if bias:
        weights |= {f"{name}.bias": random.normal(size=rows) for name, rows in shapes.items()}
    x = random.normal(size=(2, length, width))
    numbers = {name: array.tolist() for name, array in weights.items()}
    want = [by_loops(numbers, sequence.tolist(), causal=causal) for sequence in x]
    np.testing.assert_allclose(self_attention(weights, x, causal=causal), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("causal", "want"),
    [
        (False, [[0.802224, 0.598888], [0.598888, 0.802224], [0.751745, 0.751745]]),
        (True, [[1.0, 0.0], [0.330238, 0.669762], [0.751745, 0.751745]]),
    ],
    ids=["plain", "causal"],
)
def test_identity_projections_by_hand(causal, want):
    weights = {f"{name}.weight": np.eye(2) for name in "qkv"}
    x = np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]])
    np.testing.assert_allclose(self_attention(weights, x, causal=causal), [want], atol=5e-7)
