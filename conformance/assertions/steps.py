"""The steps of a definition, one after the other, and what it gives where one is left out or reads something else.

A definition is NumPy. Evaluated on arrays that note each operation, it tells which operations it has and which
weights each result comes from; evaluated again, a step can be skipped in every layer, or be given an earlier result.
No definition knows of it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from conformkit.conformance.findings.altered import Altered
from conformkit.spec.arrays import Array

__all__ = ["Defined", "Operation", "Slip", "layerless", "operations", "slips", "with_slip"]

Arrays = Mapping[str, Array]
Defined = Callable[[Arrays, Arrays], Array]
Key = tuple[str, str, int]
"""An operation, the weights that its result comes from, without the number of a layer, and which one of those."""
_LAYER = re.compile(r"(?<=\.)\d+(?=\.)")
_WORDS = {
    "tanh": "tanh", "exp": "exponential", "sqrt": "root", "maximum": "maximum", "multiply": "factor",
    "true_divide": "division", "divide": "division", "subtract": "subtraction", "power": "power", "square": "square",
}  # fmt: skip
_ACTIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "ReLU": lambda x: np.maximum(x, 0.0),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "tanh": np.tanh,
    "SiLU": lambda x: x / (1.0 + np.exp(-x)),
    "GELU by tanh": lambda x: 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3))),
    "GELU": lambda x: 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0))),
    "the square of ReLU": lambda x: np.maximum(x, 0.0) ** 2,
    "x σ(1.702 x)": lambda x: x / (1.0 + np.exp(-1.702 * x)),
    "Φ(x)": lambda x: 0.5 * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0))),
    "softplus": lambda x: np.logaddexp(0.0, x),
    "ReLU6": lambda x: np.clip(x, 0.0, 6.0),
    "leaky ReLU": lambda x: np.where(x > 0, x, 0.01 * x),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
}
_BACK = 6
"""So many earlier results may stand for another one."""
_FIRST, _SECOND, _BOTH = 0, 1, -1


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation: its key, the labels of what it reads, and whether one of these is a weight."""

    key: Key
    label: str
    read: tuple[str, ...]
    weighs: bool
    shape: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    hides: bool = False
    """Whether it adds -inf, as a mask does."""
    largest: float = 0.0
    """The largest finite number of its result."""


@dataclass(frozen=True, slots=True)
class Slip:
    """A step that gives one of its operands (`takes`), or reads or gives an earlier result (`source`) instead."""

    at: Key
    change: Altered
    names: tuple[str, ...]
    takes: int = _BOTH
    source: Key | None = None
    operand: int = _BOTH
    """Which operand is replaced by the source; the result, if none."""
    times: float = 1.0
    """By what the second operand is multiplied: -1 for the wrong sign, 2 for what is added twice."""
    adds: bool = False
    """Whether the source is added to the result."""
    function: str = ""
    """The activation that is applied to the source, or to the operand, in place of the right one."""
    made: Callable[[list[Any], Array], Array] | None = None
    """What makes the result of the operands, and of the right one."""
    later: Key | None = None
    """A step after it, whose result is made anew by `remade`, of itself and of the last operand here."""
    remade: Callable[[Array, Array], Array] | None = None


@dataclass(slots=True)
class _Course:
    """One evaluation: its steps so far, their last results, and what goes wrong in it."""

    slip: Slip | None = None
    steps: list[Operation] = field(default_factory=list)
    results: dict[Key, Array] = field(default_factory=dict)
    count: Counter[tuple[str, str]] = field(default_factory=Counter)
    operand: Array | None = None
    """The last operand where it went wrong."""


_course: ContextVar[_Course] = ContextVar("course")


def layerless(name: str) -> str:
    """Return a name of weights without the number of its layer."""
    return _LAYER.sub("…", name)


def operations(definition: Defined, weights: Arrays, inputs: Arrays) -> list[Operation]:
    """Return the steps of a definition, in their order."""
    return _evaluated(definition, weights, inputs, None)[1]


def slips(steps: list[Operation]) -> Iterator[Slip]:
    """Yield what may go wrong in the steps of a definition, the simplest first."""
    for step in {step.key: step for step in steps}.values():
        yield from _skips(step)
    milestones = _milestones(steps)
    yield from _replaced(milestones)
    for one, step in combinations(milestones, 2):
        if one.shape[-2:] == step.shape[-2:]:
            yield Slip(step.key, Altered.MORE, (_told(one), _told(step)), source=one.key, adds=True)


def _replaced(milestones: list[Operation]) -> Iterator[Slip]:
    """Yield that an earlier result stands where another one belongs."""
    for place, step in enumerate(milestones):
        earlier = [one for one in milestones[max(0, place - _BACK) : place] if one.shape == step.shape]
        for one in reversed(earlier):
            yield _instead(step, one, next_to=one is milestones[place - 1])
            if one.label == step.label and one.weighs > step.weighs:
                told = f"the activation after {_named(step.label)}"
                yield from (
                    Slip(step.key, Altered.OTHER, (told, name), source=one.key, function=name) for name in _ACTIVATIONS
                )
            if step.key[0] == "add" and not step.weighs and all(step.read):
                yield from _in_sums(step, one)


def _instead(step: Operation, one: Operation, *, next_to: bool) -> Slip:
    """Return that an earlier result takes the place of this one: what lies between is left out."""
    if one.label == step.label:
        said: tuple[str, ...] = (f"what follows the map by {_named(step.label)}",)
    else:
        said = (_named(step.label),) if next_to else (_told(step), _told(one))
    return Slip(step.key, Altered.ABSENT if len(said) == 1 else Altered.OTHER, said, source=one.key)


def _in_sums(step: Operation, one: Operation) -> Iterator[Slip]:
    """Yield that an earlier result is added, or that something is added to it."""
    first, second = map(_named, step.read)
    yield Slip(step.key, Altered.OTHER, (f"what {second} is added to", _told(one)), source=one.key, operand=_FIRST)
    yield Slip(step.key, Altered.OTHER, (f"{second}, added to {first}", _told(one)), source=one.key, operand=_SECOND)


def with_slip(definition: Defined, weights: Arrays, inputs: Arrays, slip: Slip) -> Array:
    """Return the definition's result with one slip, in all layers."""
    return _evaluated(definition, weights, inputs, slip)[0]


def _evaluated(
    definition: Defined, weights: Arrays, inputs: Arrays, slip: Slip | None
) -> tuple[Array, list[Operation]]:  # fmt: skip
    course = _Course(slip)
    token = _course.set(course)
    try:
        known = {name: _noted(array, name.rpartition(".")[0] or name, weighs=True) for name, array in weights.items()}
        with np.errstate(all="ignore"):  # a root of a negative number, where a square is left out
            result = definition(known, {name: _noted(array, name) for name, array in inputs.items()})
        return np.asarray(result), course.steps
    finally:
        _course.reset(token)


def _skips(step: Operation) -> Iterator[Slip]:
    """Yield that a step is left out, or has the opposite sign."""
    name, label, _ = step.key
    two = len(step.read) > 1 and all(step.read)
    if name == "add" and two and not step.weighs:
        yield Slip(step.key, Altered.ABSENT, (f"what {_named(step.read[1])} is added to",), takes=_SECOND)
        yield Slip(step.key, Altered.ABSENT, (f"the addition of {_named(step.read[1])}",), takes=_FIRST)
    elif name in _WORDS and step.shapes[0] == step.shape:
        yield Slip(step.key, Altered.ABSENT, (f"the {_WORDS[name]} after `{label}`",), takes=_FIRST)
    if name in _ACTIVATIONS:
        others = (other for other in _ACTIVATIONS if other != name)
        told = f"{name} after `{label}`"
        yield from (Slip(step.key, Altered.OTHER, (told, other), takes=_FIRST, function=other) for other in others)
    if name in {"add", "subtract"} and two:
        yield Slip(step.key, Altered.OPPOSITE, (_named(step.read[1]),), times=-1.0)
        yield Slip(step.key, Altered.TWICE, (_named(step.read[1]),), times=2.0)


def _milestones(steps: list[Operation]) -> list[Operation]:
    """Return the last step before another weight is used, and the last one that uses it: results that have a name."""
    last = [one for one, after in pairwise(steps) if one.label != after.label or one.weighs > after.weighs]
    return list({step.key: step for step in [*last, *steps[-1:]]}.values())


def _told(step: Operation) -> str:
    return f"{'' if step.weighs else 'what follows '}{_named(step.label)}"


def _named(label: str) -> str:
    return f"`{layerless(label)}`" if label else "a constant"


class _Noting(np.ndarray[Any, Any]):
    """An array whose operations are noted, and may go wrong."""

    label: str
    weighs: bool

    def __array_finalize__(self, other: Any) -> None:
        """Keep the label in views and copies."""
        self.label, self.weighs = getattr(other, "label", ""), getattr(other, "weighs", False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Carry an operation out, or what takes its place."""
        options.pop("out", None)
        plain = [_plain(one) for one in inputs]
        result = getattr(ufunc, method)(*plain, **options)
        if method != "__call__" or not isinstance(result, np.ndarray) or result.dtype.kind != "f":
            return _noted(result, self.label)
        heavy = [one.label for one in inputs if getattr(one, "weighs", False) and one.label]
        read = tuple(getattr(one, "label", "") for one in inputs)
        label = (heavy or [one for one in reversed(read) if one] or [""])[0]
        return _noted(_carried_out(ufunc.__name__, ufunc, plain, result, label, read, weighs=bool(heavy)), label)

    def __getitem__(self, index: Any) -> Any:
        """Read a part, such as the first position: a step, too."""
        found = super().__getitem__(index)
        if not isinstance(found, np.ndarray) or found.dtype.kind != "f":
            return found
        part = _plain(found)
        made = _carried_out("item", None, [part], part, self.label, (self.label,), weighs=self.weighs)
        return _noted(made, self.label)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        """Carry out what moves numbers, such as `where`, and keep the label."""
        found = super().__array_function__(function, types, arguments, options)
        return _noted(found, self.label) if isinstance(found, np.ndarray) else found


def _carried_out(
    name: str, ufunc: Any, operands: list[Any], result: Array, label: str, read: tuple[str, ...], *, weighs: bool
) -> Array:  # fmt: skip
    """Note a step, and return its result, or what the slip makes of it."""
    course = _course.get()
    key = (name, layerless(label), course.count[name, label])
    course.count[name, label] += 1
    if course.slip is None:
        shapes = tuple(np.shape(one) for one in operands)
        hides = name == "add" and bool(np.isneginf(operands[-1]).any())
        largest = float(np.abs(result).max(initial=0.0, where=np.isfinite(result)))
        course.steps.append(Operation(key, label, read, weighs, result.shape, shapes, hides, largest))
    elif key == course.slip.at and course.slip.made is not None:
        course.operand = np.asarray(operands[-1])
        result = course.slip.made(operands, result)
    elif key == course.slip.at:
        result = _gone_wrong(course, ufunc, operands, result)
    elif key == course.slip.later and course.slip.remade is not None and course.operand is not None:
        result = course.slip.remade(result, course.operand)
    course.results[key] = result
    return result


def _gone_wrong(course: _Course, ufunc: Any, operands: list[Any], result: Array) -> Array:
    """Return what a step gives with the slip; what it should, where the slip has no meaning."""
    slip = course.slip
    assert slip is not None
    if slip.times != 1.0:
        return np.asarray(ufunc(operands[0], slip.times * operands[1]))
    if slip.takes != _BOTH:
        taken = np.array(np.broadcast_to(operands[slip.takes], result.shape))
        return np.asarray(_ACTIVATIONS[slip.function](taken)) if slip.function else taken
    source = course.results.get(slip.source, result) if slip.source is not None else result
    if slip.function and source.shape == result.shape:
        return np.asarray(_ACTIVATIONS[slip.function](source))
    if slip.adds:
        return np.asarray(result + source)
    if slip.operand == _BOTH or source.shape != result.shape:
        return source if source.shape == result.shape else result
    return np.asarray(ufunc(*(source if place == slip.operand else one for place, one in enumerate(operands))))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, _Noting) else value


def _noted(value: Any, label: str, *, weighs: bool = False) -> Any:
    if not isinstance(value, np.ndarray | np.floating) or value.dtype.kind != "f":
        return value
    noted = np.asarray(value).view(_Noting)
    noted.label, noted.weighs = label, weighs
    return noted
