"""The oracle of the feed-forward network compared with loops over plain numbers, and with values computed by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformkit.spec.components import COMPONENTS
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.variants import CANONICAL, Variant

ACTIVATIONS = {
    "relu": lambda x: max(x, 0.0),
    "silu": lambda x: x / (1.0 + math.exp(-x)),
    "gelu": lambda x: x * (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0,
    "gelu_tanh": lambda x: x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))) / 2.0,
}
VARIANTS = st.builds(
    CANONICAL.but, activation=st.sampled_from(list(ACTIVATIONS)), gated=st.booleans(), ffn_bias=st.booleans()
)


def one_position(weights: dict[str, Any], row: list[float], variant: Variant) -> list[float]:
    """Unit after unit, feature after feature."""

    def mapped(name: str, x: list[float]) -> list[float]:
        matrix, bias = weights[f"{name}.weight"], weights.get(f"{name}.bias")
        return [
            sum(w * value for w, value in zip(line, x, strict=True)) + (0.0 if bias is None else bias[i])
            for i, line in enumerate(matrix)
        ]

    act, up = ACTIVATIONS[variant.activation], mapped("up", row)
    if variant.gated:
        hidden = [act(g) * u for g, u in zip(mapped("gate", row), up, strict=True)]
    else:
        hidden = [act(u) for u in up]
    return mapped("down", hidden)


@settings(max_examples=25, deadline=None)
@given(VARIANTS, st.integers(1, 5), st.integers(1, 6), st.integers(0, 2**32 - 1))
def test_the_oracle_equals_a_loop_over_units(variant: Variant, width: int, hidden: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = {"d_model": width, "d_ff": hidden, "dropout": 0.0}
    parameters = COMPONENTS["FeedForward"].parameters(sizes, variant)
    weights = {name: random.normal(size=p.shape) for name, p in parameters.items()}
    x = random.normal(0.0, 2.0, (2, 3, width))
    plain = {name: value.tolist() for name, value in weights.items()}
    want = [[one_position(plain, row, variant) for row in sequence] for sequence in x.tolist()]
    np.testing.assert_allclose(feed_forward(weights, x, variant=variant), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_opposite_units_halve_their_input(activation: Any) -> None:
    eye = np.eye(4)
    weights = {"up.weight": np.concatenate([eye, -eye]), "down.weight": np.concatenate([eye, -eye], axis=1) / 2}
    x = np.array([[1.0, 2.0, 0.0, -1.0], [0.0, 1.0, 3.0, 0.0]])
    np.testing.assert_allclose(
        feed_forward(weights, x, variant=CANONICAL.but(activation=activation)), x / 2, atol=1e-15
    )


def test_relu_drops_what_is_negative() -> None:
    x = np.array([[0.2, -0.5, 0.8, -0.1, 0.6, -0.3, 0.4, 0.7]])
    weights = {"up.weight": np.eye(8), "down.weight": np.eye(8)}
    found = feed_forward(weights, x, variant=CANONICAL.but(activation="relu"))
    np.testing.assert_array_equal(found, [[0.2, 0, 0.8, 0, 0.6, 0, 0.4, 0.7]])


def test_the_gate_alone_is_activated() -> None:
    weights = {
        "gate.weight": np.array([[1.0, 0.0]]),
        "up.weight": np.array([[0.0, 1.0]]),
        "down.weight": np.ones((2, 1)),
    }
    found = feed_forward(weights, np.array([[-3.0, 5.0]]), variant=CANONICAL.but(gated=True, activation="silu"))
    np.testing.assert_allclose(found, [[-0.142278 * 5] * 2], rtol=1e-5)
