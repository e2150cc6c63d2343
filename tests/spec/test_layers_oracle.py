"""Linear maps, norms and activations compared with loops over plain numbers, and with values computed by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformkit.spec.layers import activate, linear, normalize, under
from conformkit.spec.variants import CANONICAL, Variant

NORMS = (
    CANONICAL,
    CANONICAL.but(norm_bias=False, norm_eps=1e-2),
    CANONICAL.but(norm_deviation="sample", norm_eps=1e-2),
    CANONICAL.but(norm_deviation="population", norm_eps=1e-2),
    CANONICAL.but(norm="rmsnorm"),
    CANONICAL.but(norm="rmsnorm", norm_eps=1e-2, norm_deviation="sample"),
)
ARGUMENTS = [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]


def normed(row: list[float], gamma: list[float], beta: list[float] | None, variant: Variant) -> list[float]:
    """One row, feature by feature."""
    count = len(row)
    if variant.norm == "rmsnorm":
        size = math.sqrt(sum(x * x for x in row) / count + variant.norm_eps)
        return [x / size * g for x, g in zip(row, gamma, strict=True)]
    mean = sum(row) / count
    squares = sum((x - mean) ** 2 for x in row)
    if variant.norm_deviation == "sample":
        size = math.sqrt(squares / (count - 1)) + variant.norm_eps
    elif variant.norm_deviation == "population":
        size = math.sqrt(squares / count) + variant.norm_eps
    else:
        size = math.sqrt(squares / count + variant.norm_eps)
    shift = [0.0] * count if beta is None else beta
    return [(x - mean) / size * g + b for x, g, b in zip(row, gamma, shift, strict=True)]


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(NORMS), st.integers(1, 4), st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_norms_equal_a_loop_over_features(variant: Variant, rows: int, width: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    x = random.normal(3.0, 10.0 ** random.integers(-3, 2), (rows, width))
    weights: dict[str, Any] = {"norm1.weight": random.normal(size=width)}
    if variant.norm == "layernorm" and variant.norm_bias:
        weights["norm1.bias"] = random.normal(size=width)
    gamma, beta = weights["norm1.weight"].tolist(), weights["norm1.bias"].tolist() if "norm1.bias" in weights else None
    want = [normed(row, gamma, beta, variant) for row in x.tolist()]
    np.testing.assert_allclose(normalize(weights, "norm1", x, variant), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "row", "want"),
    [
        ({"norm_eps": 1e-30}, [1, 2, 3, 4], [-1.341641, -0.447214, 0.447214, 1.341641]),
        ({}, [1, 2, 3, 4], [-1.341635, -0.447212, 0.447212, 1.341635]),
        ({"norm_deviation": "sample", "norm_eps": 1e-30}, [1, 2, 3, 4], [-1.161895, -0.387298, 0.387298, 1.161895]),
        ({"norm_deviation": "population"}, [0, 1e-3, 0, 1e-3], [-0.980392, 0.980392, -0.980392, 0.980392]),
        ({"norm": "rmsnorm", "norm_eps": 1e-30}, [1, 2, 3, 4], [0.365148, 0.730297, 1.095445, 1.460593]),
        ({}, [0, 1e-3, 0, 1e-3], [-0.156174, 0.156174, -0.156174, 0.156174]),
        ({"norm_eps": 1e-6}, [0, 1e-3, 0, 1e-3], [-0.447214, 0.447214, -0.447214, 0.447214]),
        ({"norm_eps": 1e-12}, [0, 1e-3, 0, 1e-3], [-0.999998, 0.999998, -0.999998, 0.999998]),
        ({}, [5, 5, 5, 5], [0, 0, 0, 0]),
        ({"norm": "rmsnorm"}, [0, 0, 0, 0], [0, 0, 0, 0]),
    ],
    ids=["no-eps", "eps", "sample", "population", "rms", "tiny", "tiny-1e-6", "tiny-1e-12", "constant", "rms-of-zero"],
)
def test_hand_values_of_norms(changes: dict[str, Any], row: list[float], want: list[float]) -> None:
    weights = {"n.weight": np.ones(4)}
    found = normalize(weights, "n", np.array([row], np.float64), CANONICAL.but(**changes))
    np.testing.assert_allclose(found, [want], rtol=0, atol=1.5e-6)


@pytest.mark.parametrize(
    ("activation", "want"),
    [
        ("relu", [0, 0, 0, 0, 1, 2, 3]),
        ("gelu", [-0.004050, -0.045500, -0.158655, 0, 0.841345, 1.954500, 2.995950]),
        ("gelu_tanh", [-0.003637, -0.045402, -0.158808, 0, 0.841192, 1.954598, 2.996363]),
        ("silu", [-0.142278, -0.238406, -0.268941, 0, 0.731059, 1.761594, 2.857722]),
    ],
)
def test_hand_values_of_activations(activation: Any, want: list[float]) -> None:
    found = activate(np.array(ARGUMENTS), CANONICAL.but(activation=activation))
    np.testing.assert_allclose(found, want, rtol=0, atol=6e-7)


def one(x: float, activation: str) -> float:
    """An activation of one number."""
    return {
        "relu": lambda: x if x > 0 else 0.0,
        "silu": lambda: x / (1.0 + math.exp(-x)),
        "gelu": lambda: x * math.erfc(-x / math.sqrt(2.0)) / 2.0,
        "gelu_tanh": lambda: x / (1.0 + math.exp(-2.0 * math.sqrt(2.0 / math.pi) * (x + 0.044715 * x * x * x))),
    }[activation]()


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(["relu", "silu", "gelu", "gelu_tanh"]), st.lists(st.floats(-9, 9), min_size=1, max_size=9))
def test_activations_equal_a_loop_over_numbers(activation: Any, numbers: list[float]) -> None:
    found = activate(np.array(numbers), CANONICAL.but(activation=activation))
    np.testing.assert_allclose(found, [one(x, activation) for x in numbers], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "silu", "gelu", "gelu_tanh"])
def test_large_arguments_neither_overflow_nor_warn(activation: Any) -> None:
    with np.errstate(all="raise", under="ignore"):
        found = activate(np.array([-1e4, -800.0, 800.0, 1e4]), CANONICAL.but(activation=activation))
    np.testing.assert_allclose(found, [0.0, 0.0, 800.0, 1e4], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "silu", "gelu", "gelu_tanh"])
def test_an_activation_and_its_mirror_image_differ_by_their_argument(activation: Any) -> None:
    x, variant = np.linspace(-6, 6, 41), CANONICAL.but(activation=activation)
    np.testing.assert_allclose(activate(x, variant) - activate(-x, variant), x, rtol=0, atol=1e-14)


def test_the_two_gelus_are_4_7e_4_apart_near_2_7() -> None:
    x = np.linspace(-6, 6, 12001)
    apart = np.abs(activate(x, CANONICAL) - activate(x, CANONICAL.but(activation="gelu_tanh")))
    assert apart.max() == pytest.approx(4.73e-4, abs=1e-6)
    assert abs(x[apart.argmax()]) == pytest.approx(2.70, abs=0.01)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_linear_map_equals_a_loop(out: int, into: int, bias: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    x, weight, shift = random.normal(size=(3, into)), random.normal(size=(out, into)), random.normal(size=out)
    weights = {"up.weight": weight} | ({"up.bias": shift} if bias else {})
    want = [
        [sum(weight[o, i] * row[i] for i in range(into)) + (shift[o] if bias else 0.0) for o in range(out)] for row in x
    ]
    np.testing.assert_allclose(linear(weights, "up", x), want, rtol=1e-12, atol=1e-12)


def test_names_below_a_prefix_are_relative_to_it() -> None:
    weights = {"norm1.weight": np.ones(1), "norm11.weight": np.ones(2), "attention.q.weight": np.ones(3)}
    assert list(under(weights, "norm1")) == ["weight"]
    assert list(under(weights, "attention")) == ["q.weight"]
