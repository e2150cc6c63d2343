"""Calls of code without a batch axis: one for each sequence, and their results as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from conformkit.conformance.driver.wire.arrays import Array, OutputError
from conformkit.conformance.driver.worker.frameworks.base import Framework
from conformkit.conformance.driver.worker.outputs import all_numbers

__all__ = ["all_items", "holds_items", "rows", "stacked"]


def rows(
    tensors: Mapping[str, Any], inputs: Mapping[str, Array], each: Sequence[str], framework: Framework
) -> Iterator[dict[str, Any]]:
    """Yield the native arrays of each call: the entries along the first axis of `each`, the others as they are.

    An axis of one entry is the same for all. Of an empty batch, one call with zeros is left, whose result has the shape
    that an entry would have.

    Raises: ValueError when arrays have different numbers of sequences.
    """
    own = [name for name in each if name in tensors]
    count = len(inputs[own[0]]) if own else 0
    if wrong := [name for name in own if len(inputs[name]) not in {1, count}]:
        message = f"{wrong[0]} is for {len(inputs[wrong[0]])} sequences, {own[0]} has {count}"
        raise ValueError(message)
    for row in range(count):
        yield {**tensors, **{name: tensors[name][row if len(inputs[name]) > 1 else 0] for name in own}}
    if own and not count:
        zeros = {name: np.zeros(inputs[name].shape[1:], inputs[name].dtype) for name in own}
        yield {**tensors, **{n: framework.tensor(a, cast=None, strided=False) for n, a in zeros.items()}}


def holds_items(value: Any) -> bool:
    """Whether it is a data set: an object that is not called, and whose items are read by their number."""
    return not callable(value) and not hasattr(value, "forward") and {"__getitem__", "__len__"} <= {*dir(type(value))}


def all_items(dataset: Any, framework: Framework) -> Any:
    """Return the items of a data set as one: arrays, or rows of numbers, get a first axis, which counts them.

    Raises: OutputError when there is none, or when they differ in shape or kind.
    """
    items = [dataset[place] for place in range(len(dataset))]
    if not items:
        message = "its data set has no items"
        raise OutputError(message)
    return stacked([_with_arrays(item, framework) for item in items], framework)


def _with_arrays(item: Any, framework: Framework) -> Any:
    """Return an item of a data set with arrays in place of lists of numbers."""
    if isinstance(item, Mapping):
        return {key: _with_arrays(part, framework) for key, part in item.items()}
    if not isinstance(item, list | tuple):
        return item
    if item and all(isinstance(number, int | float) for number in item):
        return framework.tensor(np.asarray(item), cast=None, strided=False)
    return type(item)(_with_arrays(part, framework) for part in item)


def stacked(values: Sequence[Any], framework: Framework, *, empty: bool = False) -> Any:
    """Return the results of several calls as that of one: arrays get a first axis, which counts the calls.

    Raises: OutputError when they differ in shape or kind.
    """
    first = values[0]
    if first is None or any(type(value) is not type(first) for value in values):
        return None if first is None else _differ(values)
    if framework.is_array(first):
        shapes = {tuple(value.shape) for value in values}
        return (
            framework.stack(values)[:0] if empty else framework.stack(values) if len(shapes) == 1 else _differ(values)
        )
    if isinstance(first, bool | int | float | str):
        return list(values)
    if all_numbers(first):
        return [] if empty else list(values)
    return _inside(first, values, lambda items: stacked(items, framework, empty=empty))


def _inside(first: Any, values: Sequence[Any], join: Callable[[list[Any]], Any]) -> Any:
    if isinstance(first, Mapping):
        return {key: join([value[key] for value in values]) for key in first}
    if isinstance(first, list | tuple):
        parts = [join([value[place] for value in values]) for place in range(len(first))]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    own = getattr(first, "__dict__", {})
    return SimpleNamespace(**{name: join([getattr(value, name) for value in values]) for name in own})


def _differ(values: Sequence[Any]) -> Any:
    found = sorted({f"{type(value).__name__}{list(getattr(value, 'shape', []))}" for value in values})
    message = f"returned single results that differ in shape or kind: {', '.join(found[:4])}"
    raise OutputError(message)
