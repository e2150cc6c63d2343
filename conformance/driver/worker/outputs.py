"""Pick the arrays out of what a call returned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from numbers import Real
from typing import Any

import numpy as np

from conformkit.conformance.driver.wire.arrays import FOREMOST, Array, OutputError

__all__ = ["all_numbers", "describe", "filled_up", "has_no_ids", "no_ids", "part", "pick", "remainder", "taken"]

_DEPTH = 4
_WIDTH = 8
_PREFERRED = "logits"
_MISSING = object()

IsArray = Callable[[object], bool]


def pick(value: Any, selector: Any, is_array: IsArray) -> dict[str, Any]:
    """Return the outputs that `selector` names: "out", "out.1", …, without those that are absent.

    Raises: OutputError when there is no first one.
    """
    first, *others = selector if isinstance(selector, list) and selector else [selector]
    found = {"out": _first(value, first, is_array)}
    for index, other in enumerate(others, 1):
        item = None if other is None else _take(value, other, is_array, None)
        if item is not None:
            found[f"out.{index}"] = item
    return found


def taken(value: Any, selector: Any, is_array: IsArray) -> Any:
    """Return what a selector picks from a value: one item, a list of several, or without a selector the whole.

    Raises: OutputError when something is not there.
    """
    if selector is None:
        return value
    if isinstance(selector, list):
        return [taken(value, one, is_array) for one in selector]
    return _first(value, selector, is_array)


def has_no_ids(value: Any) -> bool:
    """Whether a text is an empty list, or a list of some: nothing was written."""
    return isinstance(value, list) and all(isinstance(row, list) and not row for row in value)


def no_ids() -> Array:
    """Return the array of a text without ids."""
    return np.zeros((0,), np.int64)


def filled_up(value: Any) -> Any:
    """Return texts of different lengths as rows of one: what is shorter goes on with its last id. Others stay."""
    if not isinstance(value, list) or not value or not all(isinstance(row, list) and row for row in value):
        return value
    whole = all(type(number) is int for row in value for number in row)
    longest = max(map(len, value))
    return [row + row[-1:] * (longest - len(row)) for row in value] if whole else value


def part(value: Any, selector: int | str) -> Any:
    """Return a part of any value, an array too: by index, key or attribute, `0.tokens` for one within another.

    Raises: OutputError when it is not there.
    """
    found = _take(value, selector, lambda _: False, _MISSING)
    if found is _MISSING:
        message = f"an object handed to the call has no {selector!r}: it is a {type(value).__name__}"
        raise OutputError(message)
    return found


def remainder(value: Any, selector: int | str | None, is_array: IsArray) -> Any:
    """Return what a call returned besides arrays: what is selected, or the last item that is no array and no number."""
    if selector is not None:
        return _take(value, selector, is_array, None)
    plain = (bool, int, float, str)
    found = [item for item in _items(value) if item is not None and not is_array(item) and not isinstance(item, plain)]
    return found[-1] if found else None


def describe(value: Any, is_array: IsArray, depth: int = 3) -> str:
    """Describe briefly what a call returned, such as `tuple(tensor, None)`."""
    if is_array(value):
        return type(value).__name__.lower()
    if value is None or isinstance(value, bool | int | float):
        return str(type(value).__name__) if value is not None else "None"
    if all_numbers(value) and any(isinstance(item, list | tuple) for item in value):
        return "numbers"  # one array, not several results
    name = type(value).__name__[:40]
    if isinstance(value, Mapping):
        parts = [f"{str(k)[:40]}: {_inner(v, is_array, depth)}" for k, v in list(value.items())[:_WIDTH]]
    elif isinstance(value, list | tuple):
        parts = [_inner(item, is_array, depth) for item in value[:_WIDTH]]
    else:
        return name
    more = ", …" if len(value) > _WIDTH else ""
    return f"{name}({', '.join(parts)}{more})"[:400]


def _inner(value: Any, is_array: IsArray, depth: int) -> str:
    return describe(value, is_array, depth - 1) if depth > 1 else "…"


def _first(value: Any, selector: Any, is_array: IsArray) -> Any:
    by_itself = selector is None or selector == FOREMOST
    item = _default(value, is_array, selector) if by_itself else _take(value, selector, is_array, _MISSING)
    if item is None or item is _MISSING:
        wanted = "it contains no array" if by_itself else f"output = {selector!r} is not in it"
        message = f"returned {describe(value, is_array)}: {wanted}"
        raise OutputError(message)
    return item


def _take(value: Any, selector: int | str, is_array: IsArray, default: Any) -> Any:
    """Take an element by index, key or attribute, or one within another: `0.tokens`. A bare array has none."""
    if isinstance(selector, str) and "." in selector and not (isinstance(value, Mapping) and selector in value):
        steps = (int(step) if step.isdecimal() else step for step in selector.split("."))
        return reduce(lambda inside, step: _take(inside, step, is_array, default), steps, value)
    return default if is_array(value) else _taken_once(value, selector, default)


def _taken_once(value: Any, selector: int | str, default: Any) -> Any:
    if isinstance(value, Mapping):
        if selector in value:
            return value[selector]
        items = list(value.values())
        return items[selector] if isinstance(selector, int) and selector < len(items) else default
    if isinstance(selector, str):
        return getattr(value, selector, default)
    try:
        return value[selector]
    except (IndexError, KeyError, TypeError):
        return default


def _default(value: Any, is_array: IsArray, selector: str | None) -> Any:
    if is_array(value) or isinstance(value, bool | int | float) or all_numbers(value):
        return value
    preferred = _PREFERRED if selector is None else None
    return next(_arrays(value, is_array, _DEPTH, preferred), None)


def all_numbers(value: Any) -> bool:
    """Whether it is a list of numbers, or of such lists: an array in plain Python."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(item, bool | int | float) or _is_row(item) for item in value)


def _is_row(value: Any) -> bool:
    """Whether it is a list within one of numbers; those that come from an array have its kind, as `float32`."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(item, Real) or _is_row(item) for item in value)


def _arrays(value: Any, is_array: IsArray, depth: int, preferred: str | None) -> Iterator[Any]:
    if is_array(value):
        yield value
    elif depth:
        named = None if preferred is None else _take(value, preferred, is_array, None)
        if is_array(named):
            yield named
        for item in _items(value):
            yield from _arrays(item, is_array, depth - 1, preferred)


def _items(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple):
        return list(value)
    own = getattr(value, "__dict__", None)
    return list(own.values()) if isinstance(own, dict) and not isinstance(value, type) else []
