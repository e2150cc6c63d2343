"""One component called with random weights: which variants of its definition give the same output."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.patterns import shapes, to_canonical
from conformkit.conformance.binding.rules import PatternError, Rule
from conformkit.conformance.binding.sizes import derived
from conformkit.conformance.binding.solve import Unassignable
from conformkit.conformance.diagnosis.looked_for import SHAPELESS
from conformkit.conformance.probing.placements import placements
from conformkit.conformance.probing.probe import ROUNDING
from conformkit.conformance.subject.component import Subject
from conformkit.spec.arrays import Array
from conformkit.spec.components import Component, Parameter
from conformkit.spec.latent_attention import is_defined
from conformkit.spec.positional_encoding import sinusoids
from conformkit.spec.tolerances import tolerance
from conformkit.spec.variants import Variant, alternatives, choices

__all__ = ["FEW_PLACEMENTS", "Trial", "takes_pad_id"]

_Placed = tuple[tuple[Rule, ...], dict[str, Array]]
Known = Mapping[str, str]
"""Weight assignments found for parts of a component, as `placements` takes them."""

_FAINT = 1e-4
"""Rows this small show a norm's eps, whatever its value."""
_LOUD = 30.0
"""Inputs times this number reach the limits of gates."""
_ROUNDED = 1e-3
"""A float32 table is at least this near."""
_TOKENS, _LONGEST = 5, 40
"""How many positions inputs have, and at most where some must lie before the declared window and one a key longer."""
FEW_PLACEMENTS = 3
_PLACEMENTS = 24
"""Maximum number of parameter assignments to try per variant, the most plausible first."""
_PLACEMENTS_OF_OTHERS = 400
"""The same if the parameters don't fit the declared variant: then another one was probably meant."""


_SHAPING = attrgetter(*sorted(choices().keys() - SHAPELESS))


@dataclass(frozen=True)
class _Shape:
    """The sizes and parameters of variants; how many numbers these are; what tells it from other shapes."""

    sizes: Mapping[str, Any]
    parameters: dict[str, Parameter]
    numbers: int
    key: tuple[Any, ...]

    @classmethod
    def of(cls, parameters: dict[str, Parameter], sizes: Mapping[str, Any]) -> _Shape:
        shapes = [(name, p.shape) for name, p in parameters.items()]
        return cls(sizes, parameters, sum(math.prod(s) for _, s in shapes), (*shapes, sizes.get("kv_heads")))


@dataclass
class Trial:
    """The outputs of a component, and its parameters."""

    subject: Subject
    sizes: dict[str, Any]
    raw: dict[str, Array]
    trainable: dict[str, tuple[int, ...]]
    calls: list[tuple[tuple[Array, ...], Array]]
    """Inputs and output of each call."""
    known: Known = field(default_factory=dict)
    _placed: dict[Any, tuple[list[_Placed], Iterator[_Placed]]] = field(default_factory=dict)
    _turns: dict[int, int] = field(default_factory=dict)
    """By identity of an assignment, its place in the order of names."""
    _distances: dict[tuple[Variant, int], list[float]] = field(default_factory=dict)
    """By variant and identity of an assignment, how far the definition is off, for the calls that were compared."""
    _shapes: dict[tuple[Any, ...], _Shape | None] = field(default_factory=dict)
    """By the choices that parameters and sizes depend on, what follows from them."""

    @classmethod
    def of(cls, subject: Subject, known: Known, **wanted: Any) -> Trial:
        """Build, fill with noise, call with usual and with faint inputs.

        A component that could not be built in the usual sizes of the declared variant is tried again.
        """
        instance = subject.retried().build(**wanted).scatter(Draw(0, "undeclared"))
        beyond = min(subject.variant.window + 2, _LONGEST) if subject.variant.window else 0
        inputs = instance.example_inputs(Draw(0, "undeclared inputs"), tokens=max(_TOKENS, beyond))
        others = () if inputs[0].dtype.kind == "i" else (_FAINT, _LOUD) if subject.name == "FeedForward" else (_FAINT,)
        settings = [inputs, *(tuple(size * each for each in inputs) for size in others)]
        trainable = {p["name"]: tuple(p["shape"]) for p in instance.trainable}
        raw = {name: value.astype(np.float64) for name, value in instance.read_raw().items()}
        calls = [(each, instance(*each)) for each in settings]
        return cls(subject, dict(instance.sizes), raw, trainable, calls, known)

    @property
    def exact(self) -> float:
        """The error up to which a variant counts as giving these numbers."""
        return tolerance("float64", 4) if self.subject.bound.dtype == "float64" else self.close

    @property
    def close(self) -> float:
        """The error that an inner float32 computation explains."""
        depth = self._component.depth
        return ROUNDING * depth if self.subject.bound.dtype == "float64" else tolerance("float32", depth)

    def shown(self, choice: str, value: Any) -> tuple[Any, ...]:
        """Return the other values of a choice that these inputs can show: a window is shorter than they are."""
        others = alternatives(choice, value)
        return tuple(n for n in others if n < self.calls[0][0][0].shape[1]) if choice == "window" else others

    def has_parameters_of(self, variant: Variant) -> bool:
        """Whether it has as many trainable numbers as this variant of the definition."""
        return self.lacking(variant) == 0

    def has_layers_of(self, variant: Variant) -> bool:
        """Whether its parameters have places in this variant, and as many of their numbers are called biases."""
        shape = self._shape(variant)
        if shape is None or next(self._weights(variant), None) is None:
            return False
        wanted = {name: parameter.shape for name, parameter in shape.parameters.items()}
        return _biases(wanted) == _biases(self.trainable)

    def lacking(self, variant: Variant) -> int | None:
        """Return how many trainable numbers this variant of the definition has less; None if it can't be built."""
        shape = self._shape(variant)
        return None if shape is None else self._numbers - shape.numbers

    @cached_property
    def _numbers(self) -> int:
        return sum(math.prod(shape) for shape in self.trainable.values())

    def gives(self, variant: Variant, error: float, most: int = FEW_PLACEMENTS) -> bool:
        """Whether this variant is that near, with one of the `most` likely assignments of parameters."""
        return self.rules(variant, error, most) is not None

    def rules(self, variant: Variant, error: float, most: int = FEW_PLACEMENTS) -> tuple[Rule, ...] | None:
        """Return the first assignment of its parameters with which the definition is that near; None if none is."""
        for placed in islice(self._weights(variant), most):
            if all(self._distance(variant, placed, call) <= error for call in range(len(self.calls))):
                return placed[0]
        return None

    def starts_from_sinusoids(self, variant: Variant) -> bool:
        """Whether the variant's learned table of positions is initialized with the sinusoids."""
        rules = self.rules(variant, self.close) or ()
        constructed = self.subject.retried().build(**self.sizes).read_raw()
        raw = {name: a.astype(np.float64) for name, a in constructed.items()}
        shape = self._shape(variant)
        placed = {} if shape is None else to_canonical(rules, raw, shape.parameters, shape.sizes)
        table = placed.get("positions.weight")
        if table is None:
            return False
        length, width = table.shape
        return bool(np.allclose(table, sinusoids(length, width, self.subject.variant), atol=_ROUNDED))

    def rank(self, variants: Sequence[Variant]) -> None:
        """Sort assignments of parameters by their smallest distance to any of these variants, with usual inputs."""
        nearest: dict[int, float] = {}
        for variant in variants:
            for placed in islice(self._weights(variant), self._most()):
                distance = self._distance(variant, placed, 0)
                nearest[id(placed)] = min(nearest.get(id(placed), math.inf), distance)
        for so_far, _ in self._placed.values():
            so_far.sort(key=lambda placed: nearest.get(id(placed), math.inf))

    def nearest(self, variants: Sequence[Variant], within: float) -> Variant | None:
        """Return which of these variants gives the nearest numbers, with usual inputs; None if none is near enough."""
        found = [
            (self._distance(v, p, 0), n) for n, v in enumerate(variants) for p in islice(self._weights(v), self._most())
        ]
        distance, place = min(found, default=(math.inf, 0))
        return variants[place] if distance < within else None

    def distance(self, variant: Variant) -> float:
        """Return how far a variant's numbers are off, with usual inputs and its best assignment of parameters."""
        placed = islice(self._weights(variant), self._most())
        return min((self._distance(variant, one, 0) for one in placed), default=math.inf)

    def forget_ranks(self) -> None:
        """Sort assignments of parameters by their names again: distances to wrong variants may mislead."""
        for so_far, _ in self._placed.values():
            so_far.sort(key=lambda placed: self._turns[id(placed)])

    def _most(self) -> int:
        """Assignments for the whole: its parts are already placed, and only the rest is open."""
        expected = self._component.depth > 1 or self.has_parameters_of(self.subject.variant)
        return _PLACEMENTS if expected else _PLACEMENTS_OF_OTHERS

    @property
    def _component(self) -> Component:
        return self.subject.bound.component

    def _distance(self, variant: Variant, placed: _Placed, call: int) -> float:
        """Return how far the definition is off in a call; those before it have been compared."""
        known = self._distances.setdefault((variant, id(placed)), [])
        if len(known) == call:
            known.append(self._computed(variant, placed[1], *self.calls[call]))
        return known[call]

    def _computed(
        self, variant: Variant, weights: Mapping[str, Array], inputs: tuple[Array, ...], output: Array
    ) -> float:
        shape = self._shape(variant)
        sizes = {} if shape is None else shape.sizes
        named = dict(zip(self._component.inputs, inputs, strict=False))
        if self.subject.bound.causal == "always" and {"x", "tgt_mask"} <= set(self._component.inputs):
            named["tgt_mask"] = np.tri(named["x"].shape[1], dtype=np.bool_)[None, None]  # it hides them by itself
        try:
            want = self._component.forward(weights, named, sizes, variant)
        except ValueError:  # these choices do not go together: wide heads without an output projection
            return math.inf
        if want.shape != output.shape:
            return math.inf
        error = float(np.abs(output - want).max(initial=0.0)) / max(float(np.abs(want).max(initial=0.0)), 1e-30)
        return error if math.isfinite(error) else math.inf

    def _weights(self, variant: Variant) -> Iterator[_Placed]:
        """Yield canonical weights from its parameters, one for each plausible assignment."""
        shape = self._shape(variant)
        if shape is None or shape.numbers != self._numbers:
            return
        if shape.key not in self._placed:
            self._placed[shape.key] = [], self._place(shape.parameters, shape.sizes)
        so_far, further = self._placed[shape.key]
        yield from so_far
        for placed in further:
            self._turns[id(placed)] = len(so_far)
            so_far.append(placed)
            yield placed

    def _place(self, parameters: Mapping[str, Parameter], sizes: Mapping[str, Any]) -> Iterator[_Placed]:
        for rules in self._placements(parameters, sizes):
            weights = to_canonical(rules, self.raw, parameters, sizes)
            if weights.keys() >= parameters.keys():
                yield rules, weights

    def _placements(self, parameters: Mapping[str, Parameter], sizes: Mapping[str, Any]) -> Iterator[tuple[Rule, ...]]:
        """Yield only the declared rules if there are any, else earlier findings and then plausible rules."""
        declared = self.subject.declared
        if not parameters:
            yield ()
            return
        if self.subject.bound.config.weights:
            if self._fit(declared, parameters):
                yield declared
            return
        bare = not self.subject.link.is_torch
        try:
            yield from placements(self.trainable, parameters, sizes, self.known, bare=bare, limit=self._most())
        except Unassignable:
            return

    def _fit(self, rules: tuple[Rule, ...], parameters: Mapping[str, Parameter]) -> bool:
        """Whether the parameters in the rules exist with the right shapes."""
        try:
            wanted = shapes(rules, parameters)
        except (PatternError, KeyError):
            return False
        return all(name in self.raw and self.raw[name].shape == shape for name, shape in wanted.items())

    def _shape(self, variant: Variant) -> _Shape | None:
        """Return the sizes and parameters of a variant; None if these sizes do not allow it, or nothing defines it."""
        if variant.has_latent and not is_defined(variant):
            return None
        key = _SHAPING(variant)
        if key not in self._shapes:
            sizes = self._sizes(variant)
            parameters = None if sizes is None else self._component.parameters(sizes, variant)
            self._shapes[key] = None if sizes is None or parameters is None else _Shape.of(parameters, sizes)
        return self._shapes[key]

    def _sizes(self, variant: Variant) -> dict[str, Any] | None:
        """Return the sizes with this variant's heads; None if it does not allow such heads, or needs a padding id."""
        offset = variant.position_offset
        if offset == "pad_id + 1" != self.subject.variant.position_offset and not takes_pad_id(self.subject):
            return None
        if "num_heads" not in self.sizes:
            return self.sizes
        try:
            found = derived(self.sizes, variant)
        except (ExpressionError, TypeError, ValueError):
            return None
        return None if found is None else {**self.sizes, **found}


def takes_pad_id(subject: Subject) -> bool:
    """Whether a component is constructed with a padding id."""
    return "pad_id" in subject.bound.construct.names()


def _biases(parameters: Mapping[str, tuple[int, ...]]) -> int:
    """Return how many numbers are in parameters that are called biases."""
    return sum(math.prod(shape) for name, shape in parameters.items() if "bias" in name.rpartition(".")[2])
