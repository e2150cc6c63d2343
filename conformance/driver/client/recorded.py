"""The form of the record of a call that a worker sends: bounded, in order, without circles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["is_place", "is_record"]

_MAX_VALUES = 4000
_MOST_NUMBERS = 1 << 21
_RANK = 12
_OPERANDS = 64
_SCALARS = 8
_NAME = 400
"""What is cleaned on the way may become longer than the worker sends it."""


def is_record(value: Any) -> bool:
    """Whether it is a list of values, each of which is given earlier ones only."""
    return isinstance(value, list) and len(value) <= _MAX_VALUES and all(map(_is_value, range(len(value)), value))


def is_place(value: Any) -> bool:
    """Whether it may be the place of a value."""
    return type(value) is int and 0 <= value < _MAX_VALUES


def _is_value(place: int, value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        (
            all(isinstance(value.get(key), str) and len(value[key]) <= _NAME for key in ("op", "part", "name")),
            _is_list(value.get("given"), _OPERANDS) and all(type(n) is int and 0 <= n < place for n in value["given"]),
            _is_list(value.get("shape"), _RANK) and _is_shape(value["shape"]),
            _is_list(value.get("scalars"), _SCALARS) and all(map(_is_number, value["scalars"])),
        )
    )


def _is_list(value: Any, most: int) -> bool:
    return isinstance(value, list) and len(value) <= most


def _is_shape(shape: list[Any]) -> bool:
    return all(type(n) is int and 0 <= n <= _MOST_NUMBERS for n in shape) and math.prod(shape) <= _MOST_NUMBERS


def _is_number(value: Any) -> bool:
    return type(value) in {int, float} and abs(value) < 2**53
