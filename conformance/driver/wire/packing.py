"""Arrays as bytes: a table of their names, formats and shapes, then their values as they lie in memory.

    4 bytes   number of arrays, little endian like all numbers
    4 bytes   length of the table
    table     for each array: 2 bytes length of its name, 1 format, 1 number of axes, 8 for each extent; its name
    values    of each array in turn, each from a multiple of 64 bytes on, counted from the beginning

A reader copies nothing: the arrays that it returns lie in the bytes that it was given. Where these begin at a multiple
of 64 bytes, so does every array, as frameworks place theirs: libraries of linear algebra sum elsewhere in
another order, and then equal calls are not equal to the last digit.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from conformkit.conformance.driver.errors import ProtocolError

__all__ = ["ALIGNED", "PAYLOAD_LIMIT", "TABLE_LIMIT", "WIRE_DTYPES", "Arrays", "pack", "unpack"]

Arrays = Mapping[str, np.ndarray[Any, Any]]

PAYLOAD_LIMIT = 256 << 20
TABLE_LIMIT = 1 << 20
WIRE_DTYPES = frozenset({"float64", "float32", "int64", "bool"})
"""The dtypes that cross the wire. Everything else is converted before, or refused."""

_FORMATS = tuple(map(np.dtype, ("float64", "float32", "int64", "bool")))
_CODES = {dtype: code for code, dtype in enumerate(_FORMATS)}
_COUNTS, _ENTRY = struct.Struct("<II"), struct.Struct("<HBB")
_BYTE, ALIGNED = np.dtype(np.uint8), 64


def pack(arrays: Arrays) -> tuple[list[bytes | memoryview], int]:
    """Return pieces to be sent one after the other, and their length. Raises ProtocolError for what cannot be sent."""
    table: list[bytes] = []
    values: list[bytes | memoryview] = []
    size = 0
    for name, array in arrays.items():
        plain = _plain(name, array)
        table.append(_entry(name, plain))
        if plain.size:
            values += (plain.reshape(-1).view(_BYTE).data, bytes(-plain.nbytes % ALIGNED))
            size += plain.nbytes + -plain.nbytes % ALIGNED
    packed = b"".join(table)
    if len(packed) > TABLE_LIMIT:
        message = f"names and shapes of {len(packed)} bytes, the limit is {TABLE_LIMIT}"
        raise ProtocolError(message)
    front = _COUNTS.pack(len(table), len(packed)) + packed
    front += bytes(-len(front) % ALIGNED)
    return [front, *values], len(front) + size


def _plain(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array whose memory holds its values in order."""
    if array.dtype not in _CODES:
        if array.dtype.name not in WIRE_DTYPES:  # the others have another machine's order of bytes
            message = f"the array {name!r:.40} is {array.dtype.name}, expected one of {', '.join(sorted(WIRE_DTYPES))}"
            raise ProtocolError(message)
        array = array.astype(array.dtype.name)
    return np.asarray(array, order="C")


def _entry(name: str, array: np.ndarray[Any, Any]) -> bytes:
    try:
        own = name.encode()
        entry = _ENTRY.pack(len(own), _CODES[array.dtype], array.ndim)
    except (UnicodeEncodeError, struct.error) as error:
        message = f"the array {name!r:.40} has no name that can be sent: {error!s:.200}"
        raise ProtocolError(message) from error
    return entry + struct.pack(f"<{array.ndim}Q", *array.shape) + own


def unpack(payload: Any) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a payload, any bytes. Raises ProtocolError unless it is exactly what `pack` makes of some.

    They can be written to: where the payload cannot, they are copies.
    """
    data = np.frombuffer(payload, _BYTE)
    data = data if data.flags.writeable else data.copy()
    try:
        return _unpacked(data)
    except (struct.error, ValueError, IndexError) as error:
        message = f"the payload holds no arrays: {error!s:.200}"
        raise ProtocolError(message) from error


def _unpacked(data: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    count, length = _COUNTS.unpack(data[: _COUNTS.size].tobytes())
    if length > min(TABLE_LIMIT, len(data) - _COUNTS.size):
        raise ValueError(f"its table has {length} bytes")
    at = _COUNTS.size + length
    at += -at % ALIGNED
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name, dtype, shape in _entries(data[_COUNTS.size : _COUNTS.size + length].tobytes(), count):
        if name in found:
            raise ValueError(f"it has {name!r:.40} twice")
        size = math.prod(shape) * dtype.itemsize
        if size > len(data) - at:
            raise ValueError(f"{name!r:.40} ends behind it")
        found[name] = _viewed(data[at : at + size], dtype, shape)
        at += size + -size % ALIGNED
    if at != len(data):
        raise ValueError(f"it has {len(data)} bytes, its arrays take {at}")
    return found


def _entries(table: bytes, count: int) -> Iterator[tuple[str, np.dtype[Any], tuple[int, ...]]]:
    """Yield name, format and shape of each array, none of which is larger than a payload may be."""
    at = 0
    for _ in range(count):
        length, code, axes = _ENTRY.unpack_from(table, at)
        shape = struct.unpack_from(f"<{axes}Q", table, at + _ENTRY.size)
        at += _ENTRY.size + 8 * axes + length
        name = table[at - length : at]
        if at > len(table):
            raise ValueError("a name ends behind its table")
        if math.prod(max(extent, 1) for extent in shape) > PAYLOAD_LIMIT:  # an extent of 0 makes it empty
            raise ValueError(f"{name.decode()!r:.40} has extents of more than {PAYLOAD_LIMIT}")
        yield name.decode(), _FORMATS[code], shape
    if at != len(table):
        raise ValueError(f"its table has {len(table)} bytes for {count} arrays")


def _viewed(own: np.ndarray[Any, Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    if dtype.kind == "b" and own.size and own.max() > 1:
        raise ValueError("a truth value is neither 0 nor 1")
    return own.view(dtype).reshape(shape)
