"""Derivatives by finite differences, for comparison with those that an implementation gives.

    f'(0) ≈ (f(h) - f(-h)) / 2h        f(t) = Σ cotangent ⊙ output(inputs + t · direction, parameters + t · direction)

The direction is random and covers all inputs and parameters at once: any wrong gradient shows, at the cost of two
calls. Only when one shows is each looked at alone, to name it. The two one-sided slopes enclose the
derivative wherever the function bends one way, at a kink of ReLU too: half their distance is added to what is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_close, check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.outcomes import Gradients
from conformkit.spec.arrays import Array
from conformkit.spec.rounding import SIGMAS, UNIT
from conformkit.spec.tolerances import GRADIENT

__all__ = [
    "Point",
    "Slope",
    "SlopeComparison",
    "check_gradients",
    "check_slope_in_half",
    "compare",
    "cotangent_for",
    "differentiate",
    "directions",
    "moved",
    "output_shape",
    "slope",
    "slope_of_definition",
    "wide_enough",
]  # fmt: skip

_PLACES, _ROUNDINGS = 8, 4.0
"""Places at which slopes are compared in half precision, so many roundings apart."""
_FINER = 16
"""A step that crosses few kinks is so many times smaller; rounding is then still far below the tolerance."""
Maybe = Mapping[str, Array | None]
_Value = TypeVar("_Value")
_SPREAD = 0.01
"""Size of a direction's entries.

With the steps of spec/tolerances.py numbers of order 1 then move by 1e-7 in float64 and by 1e-4 in float32: small
enough to cross few kinks, large enough for rounding to stay ten times below the tolerance."""


@dataclass(frozen=True, slots=True)
class Slope:
    """The slope of a function of one number at 0, from either side."""

    left: float
    right: float

    @property
    def central(self) -> float:
        """The central difference."""
        return (self.left + self.right) / 2

    @property
    def bend(self) -> float:
        """How far the derivative may be from the central difference."""
        return abs(self.right - self.left) / 2


@dataclass(frozen=True, slots=True)
class SlopeComparison:
    """A directional derivative as given and by differences, and its usual size along this direction."""

    given: float
    slope: Slope
    scale: float

    def excess(self, tolerance: float) -> float:
        """How far apart they are beyond what is allowed."""
        return abs(self.given - self.slope.central) - self.slope.bend - tolerance * self.scale

    def check(self, label: str, tolerance: float) -> None:
        """Check that they agree."""
        allowance = self.scale + self.slope.bend / tolerance
        check_close(label, np.array(self.given), np.array(self.slope.central), tolerance, scale=allowance)


def slope(function: Callable[[float], float], step: float, middle: float) -> Slope:
    """Return both one-sided difference quotients; `middle` is the function's value at 0."""
    ahead, behind = function(step), function(-step)
    return Slope((middle - behind) / step, (ahead - middle) / step)


def directions(draw: Draw, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return a random direction for each array."""
    return {name: draw.values(*array.shape, scale=_SPREAD) for name, array in arrays.items()}


def moved(arrays: Mapping[str, Array], ways: Mapping[str, Array], amount: float) -> dict[str, Array]:
    """Return the arrays; those with a direction are moved by `amount` along it."""
    return {name: a + amount * ways[name] if name in ways else a for name, a in arrays.items()}


def compare(gradients: Maybe, ways: Mapping[str, Array], found: Slope, *, scale: float = 0.0) -> SlopeComparison:
    """Compare what gradients give along a direction with a slope; a gradient of None counts as zero.

    The error is judged relative to the larger of the two, to what a sum of these terms with random signs would be (it
    may have cancelled), and to `scale`.
    """
    terms = [g * ways[name] for name, g in gradients.items() if g is not None and name in ways]
    given = sum(float(term.sum()) for term in terms)
    usual = math.sqrt(sum(float((term**2).sum()) for term in terms))
    return SlopeComparison(given, found, max(abs(given), abs(found.central), usual, scale))


# -- of an implementation ----------------------------------------------------------------------------------------------


def differentiable(instance: Instance, inputs: Iterable[Array]) -> dict[str, Array]:
    """Return the inputs that have derivatives, by name: ids and masks have none, nor has what its call does not use."""
    bound = instance.subject.bound
    named = [pair for pair in zip(bound.component.inputs, inputs, strict=False) if pair[0] in bound.call.names()]
    return {name: a for name, a in named if name != "mask" and np.issubdtype(a.dtype, np.floating)}


def output_shape(instance: Instance, inputs: tuple[Array, ...]) -> tuple[int, ...]:
    """Return the shape that the contract gives the output."""
    component = instance.subject.bound.component
    if component.extent is not None:
        return component.extent(dict(zip(component.inputs, inputs, strict=False)), instance.sizes)
    first, kind = inputs[0].shape, component.inputs[0]
    if kind == "q":
        return (*first[:-1], inputs[2].shape[-1])
    if kind == "ids":
        return (*first, instance.sizes["vocab_size"])
    return (*first[:-1], instance.sizes.get("d_v") or first[-1])


def cotangent_for(instance: Instance, inputs: tuple[Array, ...], draw: Draw) -> Array:
    """Return random numbers in the shape of the output."""
    return draw.values(*output_shape(instance, inputs))


def differentiate(
    instance: Instance, inputs: tuple[Array, ...], cotangent: Array, *, mode: str = "eval", seed: int | None = None
) -> Gradients:
    """Differentiate with respect to every input that has derivatives and every trainable parameter."""
    wrt = tuple(differentiable(instance, inputs))
    found = instance.vjp(*inputs, cotangent=cotangent, wrt=wrt, mode=mode, seed=seed)
    check_shape(f"{instance.subject.name}'s output", found.out, cotangent.shape)
    return found


def wide_enough(every: Sequence[Subject]) -> list[Subject]:
    """Return the components whose outputs are precise enough for differences; raise NotApplicable if there is none.

    In half precision a visible step is as large as the result itself.
    """
    wide = [subject for subject in every if not subject.half]
    if every and not wide:
        form = every[0].precision
        raise NotApplicable.from_formats(
            f"differences of its own outputs are lost in {form}'s rounding; GRAD-ORACLE uses exact ones"
        )
    return wide


def slope_of_definition(
    instance: Instance, inputs: tuple[Array, ...], ways: Mapping[str, Array], cotangent: Array,
    *, there: Mapping[str, Array] | None = None,
) -> Slope:  # fmt: skip
    """Return how fast the definition changes along a direction, in float64, with the weights last written or read.

    `there` has weights and inputs to use in their place.
    """
    component, variant = instance.subject.bound.component, instance.subject.variant
    given = {n: instance.held(a) for n, a in zip(component.inputs, inputs, strict=False)}
    given |= {n: a for n, a in (there or {}).items() if n in given}
    held = {n: (there or {}).get(n, a) for n, a in instance.weights.items()}

    def value(amount: float) -> float:
        weights, arrays = moved(held, ways, amount), moved(given, ways, amount)
        return float((component.forward(weights, arrays, instance.sizes, variant) * cotangent).sum())

    return slope(value, 1e-6, value(0.0))


def check_slope_in_half(
    label: str, given: SlopeComparison, instance: Instance, inputs: tuple[Array, ...], ways: Mapping[str, Array],
    cotangent: Array, draw: Draw,
) -> None:  # fmt: skip
    """Check a derivative against the definition's, in half precision.

    It may be as far off as the definition's slope differs between places that are a few roundings apart: where ReLU
    bends, one rounding decides on which side a number is.
    """
    allowed = GRADIENT[instance.subject.precision]
    if given.excess(allowed) > 0:
        arrays = {**instance.weights, **differentiable(instance, inputs)}
        reach = _ROUNDINGS * UNIT[instance.subject.precision]
        slopes = [
            slope_of_definition(
                instance, inputs, ways, cotangent,
                there={n: a * draw.uniform(*a.shape, low=1.0 - reach, high=1.0 + reach) for n, a in arrays.items()},
            ).central
            for _ in range(_PLACES)
        ]  # fmt: skip
        allowed = max(allowed, SIGMAS * float(np.std(slopes)) / given.scale)
    given.check(label, allowed)


@dataclass(frozen=True, slots=True)
class Point:
    """The point where an instance is differentiated: inputs and parameters by name, `input x` for those of the call."""

    instance: Instance
    inputs: tuple[Array, ...]
    arrays: Mapping[str, Array]
    mode: str = "eval"
    seed: int | None = None
    """The random state at each call, for dropout."""

    @classmethod
    def of(cls, instance: Instance, inputs: tuple[Array, ...], *, mode: str = "eval", seed: int | None = None) -> Point:
        """Return the point where an instance is now."""
        raw = instance.read_raw() if instance.trainable else {}
        parameters = {p["name"]: raw[p["name"]].astype(np.float64) for p in instance.trainable}
        if mode == "train" and not instance.keeps_parameters():  # gradients in training are those of other places
            parameters = {}
        return cls(instance, inputs, parameters | _inputs(differentiable(instance, inputs)), mode, seed)

    @property
    def exact(self) -> bool:
        """Whether differences with a smaller step are not lost in rounding."""
        return self.instance.subject.precision == "float64"

    def output(self, ways: Mapping[str, Array], amount: float) -> Array:
        """Return the output `amount` along a direction, and leave the parameters there."""
        there = moved(self.arrays, ways, amount)
        self.instance.write_raw({p["name"]: there[p["name"]] for p in self.instance.trainable if p["name"] in there})
        names = self.instance.subject.bound.component.inputs
        inputs = (there.get(f"input {n}", a) for n, a in zip(names, self.inputs, strict=False))
        return self.instance(*inputs, mode=self.mode, seed=self.seed)

    def gradients(self, cotangent: Array) -> tuple[float, dict[str, Array | None]]:
        """Return Σ cotangent ⊙ output, and its gradients by the names of this point."""
        found = differentiate(self.instance, self.inputs, cotangent, mode=self.mode, seed=self.seed)
        return float((found.out * cotangent).sum()), {**found.parameters, **_inputs(found.inputs)}

    def slope(self, ways: Mapping[str, Array], cotangent: Array, step: float, middle: float) -> Slope:
        """Return how fast Σ cotangent ⊙ output changes along a direction."""

        def value(amount: float) -> float:
            out = self.output(ways, amount)
            check_shape(f"{self.instance.subject.name}'s output", out, cotangent.shape)
            return float((out * cotangent).sum())

        return slope(value, step, middle)


def check_gradients(label: str, point: Point, draw: Draw, *, step: float, tolerance: float) -> None:
    """Check the gradients at a point against differences; name the one that is furthest off."""
    ways = directions(draw, point.arrays)
    cotangent = cotangent_for(point.instance, point.inputs, draw)
    middle, given = point.gradients(cotangent)
    whole = compare(given, ways, point.slope(ways, cotangent, step, middle))
    if whole.excess(tolerance) > 0 and point.exact:  # at many kinks that bend either way, slopes enclose nothing
        step = step / _FINER
        whole = compare(given, ways, point.slope(ways, cotangent, step, middle))
    if whole.excess(tolerance) > 0:
        single = {name: {name: way} for name, way in ways.items()}
        parts = {
            name: compare(given, way, point.slope(way, cotangent, step, middle), scale=whole.scale)
            for name, way in single.items()
        }
        worst = max(parts, key=lambda name: parts[name].excess(tolerance))
        parts[worst].check(f"{label}: the derivative along {worst}", tolerance)
    whole.check(f"{label}: the derivative along all inputs and parameters", tolerance)


def _inputs(arrays: Mapping[str, _Value]) -> dict[str, _Value]:
    return {f"input {name}": array for name, array in arrays.items()}
