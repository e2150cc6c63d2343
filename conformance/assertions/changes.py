"""Weights and inputs with one change each: what a slip makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import NamedTuple

import numpy as np

from conformkit.conformance.assertions.steps import layerless
from conformkit.conformance.findings.altered import Altered
from conformkit.spec.arrays import Array

__all__ = ["Changed", "of_inputs", "of_weights"]

Arrays = Mapping[str, Array]


class Changed(NamedTuple):
    """A change, what it is told with, and all arrays with it."""

    change: Altered
    names: tuple[str, ...]
    arrays: Arrays


_SCALE = 0.5
"""Vectors with a larger mean are factors, and without them is with ones."""


def of_weights(weights: Arrays) -> Iterator[Changed]:
    """Yield weights with each kind of parameter changed, in all layers at a time: those of one layer are alike."""
    kinds: dict[str, list[str]] = {}
    for name in weights:
        kinds.setdefault(layerless(name), []).append(name)
    for kind, names in kinds.items():
        for change, make in _FOR[min(weights[names[0]].ndim, 2)].items():
            if change in _SQUARE and not _is_square(weights[names[0]]):
                continue
            yield Changed(change, (f"`{kind}`",), {**weights, **{name: make(weights[name]) for name in names}})
        if len(names) > 1:
            yield Changed(Altered.SHARED, (f"`{kind}`",), {**weights, **dict.fromkeys(names, weights[names[0]])})
    yield from _of_pairs(weights)


def _of_pairs(weights: Arrays) -> Iterator[Changed]:
    """Yield weights where one part stands for another one with such parameters, or both are exchanged."""
    parts: dict[str, dict[str, list[str]]] = {}
    for name in weights:
        part, _, last = layerless(name).rpartition(".")
        parts.setdefault(part, {}).setdefault(last, []).append(name)
    alike = [pair for pair in permutations(parts, 2) if _are_alike(parts[pair[0]], parts[pair[1]], weights)]
    for one, other in alike:
        yield Changed(
            Altered.OTHER, (f"`{one}`", f"`{other}`"), {**weights, **_in_place(parts[one], parts[other], weights)}
        )
    for one, other in alike:
        if one < other:  # after the others: where one is not used, both changes give the same
            both = _in_place(parts[one], parts[other], weights) | _in_place(parts[other], parts[one], weights)
            yield Changed(Altered.EXCHANGED, (f"`{one}`", f"`{other}`"), {**weights, **both})


def _in_place(one: Mapping[str, list[str]], other: Mapping[str, list[str]], weights: Arrays) -> dict[str, Array]:
    """Return the weights of a part by the names of another one."""
    return dict(zip(_names(one), (weights[name] for name in _names(other)), strict=True))


def _names(part: Mapping[str, list[str]]) -> list[str]:
    return [name for last in sorted(part) for name in part[last]]


def _are_alike(one: Mapping[str, list[str]], other: Mapping[str, list[str]], weights: Arrays) -> bool:
    """Whether two parts have the same parameters, of the same shapes."""
    return one.keys() == other.keys() and all(
        [weights[name].shape for name in one[last]] == [weights[name].shape for name in other[last]] for last in one
    )


def of_inputs(given: Arrays, optional: frozenset[str] = frozenset()) -> Iterator[Changed]:
    """Yield the inputs of a call with one of them changed."""
    for name in sorted(optional & given.keys()):
        if not _says_nothing(given[name]):
            yield Changed(Altered.ABSENT, (name,), {key: array for key, array in given.items() if key != name})
    for name, array in given.items():
        for change, make in (_OF_MASKS if array.dtype.kind == "b" else _OF_NUMBERS).items():
            if array.ndim > 1 and (change is not Altered.TRANSPOSED or _is_square(array)):
                yield Changed(change, (name,), {**given, name: make(array)})
    for one, other in permutations(given, 2):
        if given[one].shape == given[other].shape and given[one].dtype == given[other].dtype:
            yield Changed(Altered.OTHER, (one, other), {**given, one: given[other]})
            if one < other:
                yield Changed(Altered.EXCHANGED, (one, other), {**given, one: given[other], other: given[one]})


def _says_nothing(array: Array) -> bool:
    """Whether an input is what leaving it out means: a mask that hides nothing, positions that count on from 0."""
    if array.dtype.kind == "f" or array.ndim == 0:
        return False
    first = array.reshape(-1)[0]
    return bool((array == first).all() or (array == np.arange(array.shape[-1])).all())


def _is_square(array: Array) -> bool:
    return array.ndim > 1 and 1 < array.shape[-1] == array.shape[-2]


def _without(array: Array) -> Array:
    return np.ones_like(array) if float(array.mean()) > _SCALE else np.zeros_like(array)


def _turned(array: Array) -> Array:
    return np.swapaxes(array, -1, -2)


def _identity(array: Array) -> Array:
    return np.broadcast_to(np.eye(array.shape[-1], dtype=array.dtype), array.shape)


_FOR: Mapping[int, Mapping[Altered, Callable[[Array], Array]]] = {
    0: {},
    1: {Altered.ABSENT: _without, Altered.REVERSED: lambda it: it[::-1]},
    2: {
        Altered.ABSENT: np.zeros_like, Altered.IDENTITY: _identity, Altered.TRANSPOSED: _turned,
        Altered.REVERSED: lambda it: it[::-1], Altered.LATER: lambda it: np.roll(it, 1, axis=0),
        Altered.EARLIER: lambda it: np.roll(it, -1, axis=0),
    },
}  # fmt: skip
_OF_NUMBERS: Mapping[Altered, Callable[[Array], Array]] = {
    Altered.REVERSED: lambda it: it[:, ::-1], Altered.LATER: lambda it: np.roll(it, 1, axis=1),
    Altered.EARLIER: lambda it: np.roll(it, -1, axis=1),
}  # fmt: skip
_OF_MASKS: Mapping[Altered, Callable[[Array], Array]] = {Altered.INVERTED: np.logical_not, Altered.TRANSPOSED: _turned}
_SQUARE = frozenset({Altered.IDENTITY, Altered.TRANSPOSED})
