"""Values other than arrays: texts, numbers, booleans, lists and dictionaries of these, as bounded JSON."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from conformkit.conformance.driver.wire.arrays import Array, OutputError

__all__ = ["FIRST_CHARACTER", "MOST", "NotPlain", "as_json", "from_json"]

MOST = 250_000
"""The most numbers and characters in one reply: a header holds 1 MiB."""
FIRST_CHARACTER = 0x10000
"""What stands for id 0 in a text that is made of ids: no code behind it is half a character."""
_MAX_IN_LIST, _MAX_IN_ARRAY = 20_000, 1 << 20
"""Arrays of more numbers are sent as arrays, up to as many."""
_MAX_IN_ARRAYS = 4 * _MAX_IN_ARRAY
"""The most numbers in all arrays of a reply: as lists they take sixteen times as much memory as on the wire."""
_LARGEST = 2**63
_DEPTH = 12
_NUMBER, _TEXT, _ARRAY = "$number", "$text", "$array"
_STATES = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def as_json(
    value: Any,
    is_array: Callable[[object], bool],
    array: Callable[[Any], tuple[Array, str]],
    large: dict[str, Array] | None = None,
) -> Any:
    """Encode a value: arrays, tuples, iterators become lists, numbers that JSON lacks get a word.

    Texts are sent as character codes, so that nothing on the way cleans or escapes them. Large arrays are put into
    `large`, if there is one.
    Raises: OutputError for anything else, and for what is too long.
    """
    left = MOST

    def convert(item: Any, depth: int) -> Any:
        nonlocal left
        left -= len(item) if isinstance(item, str) else 1
        if depth > _DEPTH or left < 0:
            message = f"returned a {type(value).__name__} that is nested too deep or holds more than {MOST} values"
            raise OutputError(message)
        if is_array(item):
            found = array(item)[0]
            if (
                large is None
                or not _MAX_IN_LIST < found.size <= _MAX_IN_ARRAY
                or _count(large) + found.size > _MAX_IN_ARRAYS
            ):
                return convert(found.tolist(), depth)
            large[name := str(len(large))] = found
            return {_ARRAY: name}
        if depth < _DEPTH and type(item) is list and len(item) <= left and _of_ids(item):
            left -= len(item)
            return item
        if isinstance(item, list | tuple | Iterator):  # an endless one ends at the bound
            return [convert(part, depth + 1) for part in item]
        if isinstance(item, Mapping):
            return {_key(name): convert(part, depth + 1) for name, part in item.items()}
        return {_TEXT: [ord(c) for c in item]} if isinstance(item, str) else _single(item)

    return convert(value, 0)


class NotPlain(ValueError):
    """The received value is not one that `as_json` produces."""


def from_json(value: Any, depth: int = 0, large: Mapping[str, Array] = MappingProxyType({})) -> Any:
    """Decode a value, large arrays from `large`, each once. Raises NotPlain."""
    if _count(large) > _MAX_IN_ARRAYS:
        raise NotPlain(f"its arrays hold more than {_MAX_IN_ARRAYS} numbers")
    return _decoded(value, depth, dict(large))


def _decoded(value: Any, depth: int, large: dict[str, Array]) -> Any:
    if depth > _DEPTH:
        raise NotPlain("it is nested too deep")
    if isinstance(value, list):
        return value if depth < _DEPTH and _of_ids(value) else [_decoded(item, depth + 1, large) for item in value]
    if not isinstance(value, dict):
        return _bounded(value)
    if set(value) == {_NUMBER} and value[_NUMBER] in list(_STATES):
        return _STATES[value[_NUMBER]]
    if set(value) == {_TEXT}:
        return _text(value[_TEXT])
    if set(value) == {_ARRAY}:
        return _listed(large.pop(value[_ARRAY], None) if isinstance(value[_ARRAY], str) else None)
    return {name: _decoded(item, depth + 1, large) for name, item in value.items()}


def _count(arrays: Mapping[str, Array]) -> int:
    return sum(array.size for array in arrays.values())


def _listed(array: Array | None) -> Any:
    if array is None or array.size > _MAX_IN_ARRAY:
        raise NotPlain("an array of it is missing, named twice or too large")
    return array.tolist()


def _of_ids(values: list[Any]) -> bool:
    """Whether a list holds only whole numbers within 64 bits: such lists need no check of each item."""
    return set(map(type, values)) == {int} and min(values) >= -_LARGEST and max(values) < _LARGEST


def _bounded(value: Any) -> Any:
    if isinstance(value, int) and not -_LARGEST <= value < _LARGEST:
        raise NotPlain("it holds a whole number beyond 64 bits")
    return value


def _text(codes: Any) -> str:
    if not isinstance(codes, list) or not all(type(code) is int and 0 <= code < 0x110000 for code in codes):
        raise NotPlain("its codes are not characters")
    return "".join(map(chr, codes))


def _single(item: Any) -> Any:
    if item is None or isinstance(item, bool):
        return item
    if isinstance(item, numbers.Integral):
        number = int(item)
        if not -_LARGEST <= number < _LARGEST:
            message = "returned a whole number beyond 64 bits"
            raise OutputError(message)
        return number
    if isinstance(item, numbers.Real):
        real = float(item)
        return real if math.isfinite(real) else {_NUMBER: str(real)}
    message = f"returned {type(item).__name__}, expected text, numbers or lists of them"
    raise OutputError(message)


def _key(name: object) -> str:
    if isinstance(name, str | int) and not (isinstance(name, str) and name.startswith("$")):
        return str(name)[:200]
    message = f"returned a dictionary with a key of type {type(name).__name__}"
    raise OutputError(message)
