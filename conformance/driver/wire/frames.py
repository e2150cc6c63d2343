"""Frames: what the harness and its worker say to each other.

    8 bytes   length of the header, little endian
    8 bytes   length of the payload, little endian
    header    a JSON object in UTF-8
    payload   arrays by name (packing.py), or nothing

Never pickle. Lengths are bounded before a byte of either part is read.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from conformkit.conformance.driver.errors import ProtocolError
from conformkit.conformance.driver.wire.packing import ALIGNED, PAYLOAD_LIMIT, WIRE_DTYPES, Arrays, pack, unpack
from conformkit.conformance.driver.wire.text import clean_tree

__all__ = [
    "HEADER_LIMIT",
    "LENGTHS",
    "PAYLOAD_LIMIT",
    "WIRE_DTYPES",
    "Arrays",
    "decode",
    "encode",
    "lengths",
    "pieces",
    "room",
    "split",
    "unsent",
]

HEADER_LIMIT = 1 << 20
_JOINED = 1 << 16
"""Bytes up to which a copy of all arrays costs less than to send them piece by piece."""
_LENGTHS = struct.Struct("<QQ")
LENGTHS = _LENGTHS.size
_dumps = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def encode(header: Mapping[str, Any], arrays: Arrays) -> bytes:
    """Return one frame. Raises ProtocolError if it would exceed a bound."""
    return b"".join(pieces(header, arrays))


def pieces(header: Mapping[str, Any], arrays: Arrays) -> list[memoryview]:
    """Return one frame in pieces to be sent one after the other: large arrays are not copied.

    Raises: ProtocolError if it would exceed a bound.
    """
    head = _dumps(header).encode("ascii")
    values, size = pack(arrays) if arrays else ([], 0)
    _check_lengths(len(head), size)
    frame = (_LENGTHS.pack(len(head), size), head, *values)
    return [memoryview(piece) for piece in (frame if size > _JOINED else (b"".join(frame),)) if len(piece)]


def unsent(frame: list[memoryview], count: int) -> list[memoryview]:
    """Return what is left of the pieces of a frame when so many bytes are sent."""
    for number, piece in enumerate(frame):
        if count < len(piece):
            return [piece[count:], *frame[number + 1 :]]
        count -= len(piece)
    return []


def lengths(prefix: bytes | memoryview) -> tuple[int, int]:
    """Read the lengths of header and payload from the first 16 bytes of a frame."""
    head, payload = _LENGTHS.unpack(prefix)
    _check_lengths(head, payload)
    return head, payload


def room(size: int) -> memoryview:
    """Return memory to read a part of a frame into, at a multiple of 64 bytes; what is never read takes none."""
    whole = np.empty(size + ALIGNED, np.uint8)
    start = -whole.ctypes.data % ALIGNED
    return whole[start : start + size].data


def decode(head: Any, payload: Any, *, foreign: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of a frame whose lengths are known. The caller owns the arrays.

    Arrays lie in the bytes of the payload where these can be written to. Texts of a foreign frame, one that an
    implementation may have influenced, are cleaned.
    """
    text = bytes(head)
    header = _decode_header(text)
    if foreign and not _is_clean(text):
        header = _cleaned(header)
    return header, unpack(payload) if len(payload) else {}


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


def _decode_header(head: bytes) -> dict[str, Any]:
    try:
        header = _loads(head.decode())
    except (ValueError, RecursionError) as error:
        message = f"the header is not JSON: {error!s:.200}"
        raise ProtocolError(message) from error
    if not isinstance(header, dict):
        message = f"the header is a JSON {type(header).__name__}, expected an object"
        raise ProtocolError(message)
    return header


def _cleaned(header: dict[str, Any]) -> dict[str, Any]:
    try:
        cleaned: dict[str, Any] = clean_tree(header)
    except RecursionError:
        message = "the header is nested too deeply"
        raise ProtocolError(message) from None
    return cleaned


def _is_clean(head: bytes) -> bool:
    """Whether a header needs no cleaning: the usual case, found without walking through it."""
    return head.isascii() and b"\\" not in head and head.decode("ascii").isprintable()


def _refuse_constant(name: str) -> NoReturn:
    message = f"{name} is not JSON"
    raise ValueError(message)


_loads = json.JSONDecoder(parse_constant=_refuse_constant).decode
