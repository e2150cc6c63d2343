"""Finite differences: right gradients agree with them, wrong ones do not, and kinks are tolerated."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.differences import (
    Point,
    Slope,
    SlopeComparison,
    check_gradients,
    compare,
    differentiable,
    directions,
    moved,
    output_shape,
    slope,
)
from conformkit.conformance.subject.outcomes import Gradients

SEEDS = st.integers(0, 10_000)
STEP = 1e-5


def f(arrays: dict[str, Any]) -> float:
    """x·sin(x) summed, plus the cubes of w: smooth, and not symmetric about anything."""
    return float((arrays["x"] * np.sin(arrays["x"])).sum() + (arrays["w"] ** 3).sum())


def gradients(arrays: dict[str, Any]) -> dict[str, Any]:
    x, w = arrays["x"], arrays["w"]
    return {"x": np.sin(x) + x * np.cos(x), "w": 3 * w**2}


def at(seed: int) -> tuple[dict[str, Any], dict[str, Any], Slope]:
    draw = Draw(seed, "X-Y")
    arrays = {"x": draw.values(3, 4), "w": draw.values(5)}
    ways = directions(draw, arrays)
    return arrays, ways, slope(lambda h: f(moved(arrays, ways, h)), STEP, f(arrays))


@given(SEEDS)
def test_a_right_gradient_agrees(seed: int) -> None:
    arrays, ways, found = at(seed)
    compare(gradients(arrays), ways, found).check("the derivative", 1e-6)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda g: g | {"w": None},
        lambda g: g | {"w": np.zeros(5)},
        lambda g: g | {"x": 1.001 * g["x"]},
        lambda g: g | {"x": -g["x"]},
        lambda g: g | {"w": g["w"] * (np.arange(5) > 0)},
        lambda g: g | {"x": g["x"][::-1]},
        lambda g: {"x": g["x"]},
    ],
    ids=["none", "zero", "a-thousandth-off", "sign", "one-entry-missing", "order", "left-out"],
)
def test_a_wrong_gradient_is_seen(spoil: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    for seed in range(20):
        arrays, ways, found = at(seed)
        comparison = compare(spoil(gradients(arrays)), ways, found)
        assert comparison.excess(1e-6) > 0
        with pytest.raises(ClauseFailure, match="the derivative is"):
            comparison.check("the derivative", 1e-6)


def test_a_gradient_of_nan_is_seen() -> None:
    arrays, ways, found = at(0)
    with pytest.raises(ClauseFailure):
        compare(gradients(arrays) | {"w": np.full(5, np.nan)}, ways, found).check("the derivative", 1e-6)


@pytest.mark.parametrize("kink", [-0.9, -0.3, 0.0, 0.3, 0.9])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_kink_between_the_points_is_not_a_mistake(kink: float, sign: float) -> None:
    """The derivative of ReLU at 0 is 0 or 1 according to which side of the kink 0 lies."""
    found = slope(lambda h: sign * max(h - kink * STEP, 0.0), STEP, sign * max(-kink * STEP, 0.0))
    true = sign * float(kink < 0)
    compare({"x": np.array([true])}, {"x": np.ones(1)}, found).check("the derivative", 1e-6)
    assert compare({"x": np.array([true + 1.1])}, {"x": np.ones(1)}, found).excess(1e-6) > 0


def test_one_sided_slopes_bracket_the_central_one() -> None:
    found = slope(np.exp, 1e-3, 1.0)
    assert found.left < 1.0 < found.right
    assert found.central == pytest.approx(1.0, abs=1e-6)
    assert found.bend == pytest.approx(5e-4, rel=1e-2)


def test_the_error_is_relative_to_what_cancelled() -> None:
    """Terms of a thousand that cancel to nothing may leave a rounding error of a thousand."""
    given_ = {"x": np.array([1e3, -1e3])}
    comparison = compare(given_, {"x": np.ones(2)}, Slope(1e-6, 1e-6))
    assert comparison.given == 0.0
    assert comparison.scale == pytest.approx(np.sqrt(2) * 1e3)
    comparison.check("the derivative", 1e-6)


def test_a_scale_may_be_given() -> None:
    assert compare({"x": None}, {"x": np.ones(2)}, Slope(1e-9, 1e-9), scale=1.0).excess(1e-6) < 0
    assert compare({"x": None}, {"x": np.ones(2)}, Slope(1e-9, 1e-9)).excess(1e-6) > 0


@given(SEEDS)
def test_excess_and_check_agree(seed: int) -> None:
    draw = Draw(seed, "X-Y")
    left, right, given_ = draw.values(3)
    comparison = SlopeComparison(float(given_), Slope(float(left), float(right)), 1.0)
    try:
        comparison.check("the derivative", 0.1)
    except ClauseFailure:
        assert comparison.excess(0.1) > 0
    else:
        assert comparison.excess(0.1) <= 1e-12


def test_only_what_has_a_direction_moves() -> None:
    arrays = {"x": np.ones(2), "ids": np.array([1, 2])}
    there = moved(arrays, {"x": np.array([1.0, -1.0])}, 0.5)
    assert there["x"].tolist() == [1.5, 0.5]
    assert there["ids"] is arrays["ids"]
    assert arrays["x"].tolist() == [1.0, 1.0]


def test_directions_reach_every_entry() -> None:
    ways = directions(Draw(0, "X-Y"), {"x": np.zeros((3, 4)), "w": np.zeros(5)})
    assert {name: way.shape for name, way in ways.items()} == {"x": (3, 4), "w": (5,)}
    assert all((way != 0).all() for way in ways.values())


# --- of an instance ---------------------------------------------------------------------------------------------------


class Layer:
    """y = sin(x Wᵀ) + b, differentiated by hand; `spoil` changes its gradients."""

    def __init__(self, spoil: Callable[[dict[str, Any]], dict[str, Any]] = lambda found: found) -> None:
        draw = Draw(0, "layer")
        self.parameters = {"W": draw.values(4, 4), "b": draw.values(4)}
        self.spoil = spoil
        self.sizes: dict[str, int] = {"d_model": 4}
        bound = SimpleNamespace(
            component=SimpleNamespace(inputs=("x",), extent=None), call=SimpleNamespace(names=lambda: {"x"})
        )
        self.subject = SimpleNamespace(name="Layer", bound=bound, precision="float64")
        self.trainable = [{"name": name, "shape": a.shape} for name, a in self.parameters.items()]

    def read_raw(self) -> dict[str, Any]:
        return dict(self.parameters)

    def write_raw(self, arrays: dict[str, Any]) -> None:
        self.parameters |= arrays

    def __call__(self, x: Any, *, mode: str = "eval", seed: int | None = None) -> Any:
        assert (mode, seed) == ("eval", None)
        return np.sin(x @ self.parameters["W"].T) + self.parameters["b"]

    def vjp(
        self, x: Any, *, cotangent: Any, wrt: tuple[str, ...], mode: str = "eval", seed: int | None = None
    ) -> Gradients:
        assert (wrt, mode, seed) == (("x",), "eval", None)
        inner = cotangent * np.cos(x @ self.parameters["W"].T)
        found = {
            "x": inner @ self.parameters["W"],
            "W": np.einsum("bto,bti->oi", inner, x),
            "b": cotangent.sum(axis=(0, 1)),
        }
        found = self.spoil(found)
        return Gradients(self(x), {"x": found.pop("x")}, found)


def judge(layer: Any) -> None:
    draw = Draw(3, "X-Y")
    point = Point.of(layer, (draw.values(2, 3, 4),))
    check_gradients("Layer", point, draw, step=STEP, tolerance=1e-6)


def test_right_gradients_of_an_instance_pass() -> None:
    judge(Layer())


class Kinked(Layer):
    """Beside a point where it is flat it rises on both sides, so that slopes from either side agree, and are wrong."""

    def __call__(self, x: Any, **options: Any) -> Any:
        moved = self.parameters["b"] - Layer().parameters["b"]
        away = np.maximum(moved - FLAT, 0.0) - np.maximum(-moved - FLAT, 0.0)
        return super().__call__(x, **options) + away


FLAT = 2e-8
"""Less than a step moves a parameter, and more than a smaller step does."""


def test_kinks_that_bend_either_way_are_no_wrong_gradient() -> None:
    judge(Kinked())


@pytest.mark.parametrize(("name", "shown"), [("x", "input x"), ("W", "W"), ("b", "b")])
@pytest.mark.parametrize("factor", [0.0, 0.99, -1.0])
def test_the_wrong_gradient_is_named(name: str, shown: str, factor: float) -> None:
    with pytest.raises(ClauseFailure, match=f"^Layer: the derivative along {shown} is "):
        judge(Layer(lambda found: found | {name: factor * found[name]}))


def test_an_output_of_another_shape_is_told_not_stretched() -> None:
    class Narrow(Layer):
        def __call__(self, x: Any, *, mode: str = "eval", seed: int | None = None) -> Any:
            return super().__call__(x, mode=mode, seed=seed)[..., :1]

    with pytest.raises(ClauseFailure, match=r"^Layer's output has shape \(2, 3, 1\), expected \(2, 3, 4\)$"):
        judge(Narrow())


def test_a_missing_gradient_is_named() -> None:
    with pytest.raises(ClauseFailure, match=r"^Layer: the derivative along W is 0, expected "):
        judge(Layer(lambda found: found | {"W": None}))


@pytest.mark.parametrize(
    ("inputs", "sizes", "arrays", "wanted"),
    [
        (("q", "k", "v", "mask"), {}, ((2, 3, 4), (2, 5, 4), (2, 5, 7)), (2, 3, 7)),
        (("ids",), {"vocab_size": 11}, ((2, 3),), (2, 3, 11)),
        (("x",), {"d_model": 4}, ((2, 3, 4),), (2, 3, 4)),
        (("x",), {"d_model": 4, "d_v": 6}, ((2, 3, 4),), (2, 3, 6)),
    ],
    ids=["attention", "model", "block", "self-attention"],
)
def test_the_output_has_the_shape_of_the_contract(inputs: Any, sizes: Any, arrays: Any, wanted: Any) -> None:
    bound = SimpleNamespace(component=SimpleNamespace(inputs=inputs, extent=None))
    instance: Any = SimpleNamespace(subject=SimpleNamespace(bound=bound), sizes=sizes)
    assert output_shape(instance, tuple(np.zeros(shape) for shape in arrays)) == wanted


def test_what_a_call_does_not_use_is_not_differentiated() -> None:
    """Or attention that takes the memory once would be asked for a gradient of separate values."""
    call = SimpleNamespace(names=lambda: {"query", "key"})
    bound = SimpleNamespace(component=SimpleNamespace(inputs=("query", "key", "value", "mask")), call=call)
    instance: Any = SimpleNamespace(subject=SimpleNamespace(bound=bound))
    assert set(differentiable(instance, [np.zeros(2)] * 3)) == {"query", "key"}
