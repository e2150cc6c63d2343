"""Which arrays of an implementation without registered parameters are not parameters: tables, masks, caches, gradients.

torch says which tensors are trained. A NumPy object only holds arrays: a trial must distinguish weights from a table of
positions, a mask, values cached by the last call, or the buffer of a gradient.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from conformkit.conformance.binding.layouts import layouts
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter

if TYPE_CHECKING:
    from conformkit.conformance.subject.component import Instance

__all__ = ["constants", "gradients_of_others", "placeless"]

_GRADIENT = re.compile(r"^(?:d|grads?|g)_?(?=\w)|_?(?:grad|dot)$", re.IGNORECASE)


def constants(instance: Instance) -> tuple[str, ...]:
    """Return patterns of arrays that are neither written nor counted; `instance` was called once."""
    subject = instance.subject
    listed = [p["name"] for p in instance.trainable]
    longer = {n: 2 * instance.sizes[n] + 5 for n in ("block_size", "max_len") if instance.sizes.get(n)}
    first, second = subject.build(seed=1), subject.build(seed=2, **longer)
    shapes = {p["name"]: tuple(p["shape"]) for p in first.trainable}
    found = set(listed) - shapes.keys() if _enough(first) else set()
    if subject.variant.positions != "learned":
        found |= {p["name"] for p in second.trainable if shapes.get(p["name"]) != tuple(p["shape"])}
    raw, again = first.read_raw(), second.read_raw()
    fixed = {n: raw[n] for n in shapes if n in again and np.array_equal(raw[n], again[n])}
    found |= set(gradients_of_others(shapes))
    strange = set(placeless(fixed, first.canonical))
    if _numbers(shapes[n] for n in shapes.keys() - found - strange) >= _wanted(first):
        found |= strange
    return tuple(sorted({re.sub(r"\d+", "*", name) for name in found & set(listed)}))


def _enough(instance: Instance) -> bool:
    """Whether all weights exist before the first call: arrays that appear later are caches."""
    return instance.count() >= _wanted(instance)


def _wanted(instance: Instance) -> int:
    """The number of numbers in the definition's parameters."""
    return _numbers(p.shape for p in instance.canonical.values())


def _numbers(shapes: Iterable[Sequence[int]]) -> int:
    return sum(math.prod(shape) for shape in shapes)


def placeless(arrays: Mapping[str, Array], canonical: Mapping[str, Parameter]) -> Iterator[str]:
    """Yield arrays that cannot hold a canonical parameter. A vector of equal numbers may be a superfluous bias."""
    heads: set[int | None] = {None} | {p.sizes["h"] for p in canonical.values() if "h" in p.sizes}
    for name, array in arrays.items():
        if array.ndim < 2 and np.ptp(array) == 0:
            continue
        fits = (layouts(array.shape, canonical, heads=h, matrices_out_first=False) for h in heads)
        if not any(next(f, None) for f in fits):
            yield name


def gradients_of_others(shapes: Mapping[str, Sequence[int]]) -> Iterator[str]:
    """Yield arrays named like another one of the same shape plus `d` or `grad`: dW and W, grads.W and W."""
    for name, shape in shapes.items():
        if any(other != name and shapes.get(other) == shape for other in _without_gradient(name.split("."))):
            yield name


def _without_gradient(path: Sequence[str]) -> Iterable[str]:
    *parents, last = path
    yield ".".join([*parents, _GRADIENT.sub("", last)])
    if parents and re.fullmatch(r"d|grads?|gradients?", parents[-1], re.IGNORECASE):
        yield ".".join([*parents[:-1], last])
        yield ".".join([*parents[:-1], "params", last])
