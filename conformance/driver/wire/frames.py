"""Frames: what the harness and its worker say to each other.

    8 bytes   length of the header, little endian
    8 bytes   length of the payload, little endian
    header    a JSON object in UTF-8
    payload   arrays by name as safetensors, or nothing

Never pickle. Lengths are bounded before a byte of either part is read.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from conformkit.conformance.driver.errors import ProtocolError
from conformkit.conformance.driver.wire.text import clean_tree

__all__ = ["HEADER_LIMIT", "LENGTHS", "PAYLOAD_LIMIT", "WIRE_DTYPES", "Arrays", "decode", "encode", "lengths", "split"]

Arrays = Mapping[str, np.ndarray[Any, Any]]

HEADER_LIMIT = 1 << 20
PAYLOAD_LIMIT = 256 << 20
WIRE_DTYPES = frozenset({"float64", "float32", "int64", "bool"})
"""The dtypes that cross the wire. Everything else is converted before, or refused."""

_WIRE_DTYPES = frozenset(map(np.dtype, WIRE_DTYPES))
"""The same in this machine's order of bytes: NumPy makes a name anew whenever it is asked for."""
_LENGTHS = struct.Struct("<QQ")
LENGTHS = _LENGTHS.size


def encode(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return one frame. Raises ProtocolError if it would exceed a bound."""
    head = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    payload = save({name: _checked(name, array) for name, array in arrays.items()}) if arrays else b""
    _check_lengths(len(head), len(payload))
    return b"".join((_LENGTHS.pack(len(head), len(payload)), head, payload))


def lengths(prefix: bytes | bytearray) -> tuple[int, int]:
    """Read the lengths of header and payload from the first 16 bytes of a frame."""
    head, payload = _LENGTHS.unpack(prefix)
    _check_lengths(head, payload)
    return head, payload


def decode(
    head: bytes | bytearray, payload: bytes | bytearray, *, foreign: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of a frame whose lengths are known. The caller owns the arrays.

    Texts of a foreign frame, one that an implementation may have influenced, are cleaned.
    """
    header = _decode_header(bytes(head))
    if foreign and not _is_clean(head):
        header = _cleaned(header)
    return header, _decode_arrays(bytes(payload)) if payload else {}


def split(arrays: Arrays, count: int) -> list[dict[str, Any]]:
    """Distribute the arrays of a batch to its requests: "3/x" is the `x` of the fourth."""
    own: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, array in arrays.items():
        index, _, rest = name.partition("/")
        if not (index.isascii() and index.isdecimal() and int(index) < count):
            message = f"a batch of {count} has an array {name[:40]!r}"
            raise ProtocolError(message)
        own[int(index)][rest] = array
    return own


def _check_lengths(head: int, payload: int) -> None:
    for part, length, limit in (("header", head, HEADER_LIMIT), ("payload", payload, PAYLOAD_LIMIT)):
        if length > limit:
            message = f"a {part} of {length} bytes, the limit is {limit}"
            raise ProtocolError(message)


def _checked(name: str, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array that safetensors can take: it reads the raw memory and ignores strides."""
    if array.dtype not in _WIRE_DTYPES and array.dtype.name not in WIRE_DTYPES:
        message = f"the array {name!r:.40} is {array.dtype.name}, want one of {', '.join(sorted(WIRE_DTYPES))}"
        raise ProtocolError(message)
    return np.asarray(array, order="C")


def _decode_header(head: bytes) -> dict[str, Any]:
    try:
        header = json.loads(head, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        message = f"the header is not JSON: {error!s:.200}"
        raise ProtocolError(message) from error
    if not isinstance(header, dict):
        message = f"the header is a JSON {type(header).__name__}, want an object"
        raise ProtocolError(message)
    return header


def _cleaned(header: dict[str, Any]) -> dict[str, Any]:
    try:
        cleaned: dict[str, Any] = clean_tree(header)
    except RecursionError:
        message = "the header is nested too deeply"
        raise ProtocolError(message) from None
    return cleaned


def _is_clean(head: bytes | bytearray) -> bool:
    """Whether a header needs no cleaning: the usual case, found without walking through it."""
    return head.isascii() and b"\\" not in head and head.decode("ascii").isprintable()


def _decode_arrays(payload: bytes) -> dict[str, Any]:
    try:
        arrays = load(payload)
    except (SafetensorError, KeyError, ValueError, TypeError, OverflowError) as error:
        message = f"the payload is not safetensors: {error!s:.200}"
        raise ProtocolError(message) from error
    for name, array in arrays.items():
        if array.dtype not in _WIRE_DTYPES and array.dtype.name not in WIRE_DTYPES:
            message = f"the array {name!r:.40} is {array.dtype.name}, want one of {', '.join(sorted(WIRE_DTYPES))}"
            raise ProtocolError(message)
        if math.prod(max(extent, 1) for extent in array.shape) > PAYLOAD_LIMIT:  # an extent of 0 makes it empty
            message = f"the array {name!r:.40} has extents of more than {PAYLOAD_LIMIT}"
            raise ProtocolError(message)
    return arrays


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON"
    raise ValueError(message)
