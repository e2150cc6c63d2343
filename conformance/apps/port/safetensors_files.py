"""Safetensors files, read tensor by tensor and written in one pass: no more than one tensor is in memory.

The format: 8 bytes, the length of the header, little endian; the header, a JSON object that gives for each name its
dtype, shape, and place in what follows; the numbers. The library of the same name maps whole files, and its NumPy half
knows no bfloat16.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.driver.foreign import fits
from conformkit.conformance.text import one_line
from conformkit.spec.arrays import Array

__all__ = ["NUMBER_FORMATS", "SafetensorsFile", "TensorEntry", "write_safetensors"]

_MOST_HEADER = 100 << 20
_RANK = 32
"""As many axes as an array of NumPy of any version may have."""
_NUMBERS: Mapping[str, tuple[str, str]] = {
    "F64": ("<f8", "float64"), "F32": ("<f4", "float32"), "F16": ("<f2", "float16"), "BF16": ("<u2", "bfloat16"),
    "I64": ("<i8", "int64"), "I32": ("<i4", "int32"), "I16": ("<i2", "int16"), "I8": ("|i1", "int8"),
    "U8": ("|u1", "uint8"), "BOOL": ("|b1", "bool"),
}  # fmt: skip
NUMBER_FORMATS = {name: code for code, (_, name) in _NUMBERS.items()}
"""The code of each number format in a header."""


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """One tensor of a file: its number format by its usual name, its shape."""

    dtype: str
    shape: tuple[int, ...]


class SafetensorsFile:
    """One file, whose header has been read and checked. Raises Unportable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._places: dict[str, tuple[int, int]] = {}
        self.entries: dict[str, TensorEntry] = {}
        try:
            size = path.stat().st_size
            with path.open("rb") as stream:
                self._read_header(stream, size)
        except OSError as error:
            raise Unportable(f"{path} cannot be read: {error.strerror or error}") from None

    def read(self, name: str) -> Array:
        """Return one tensor; bfloat16 as float32, which holds its numbers exactly."""
        entry, (start, end) = self.entries[name], self._places[name]
        stored = np.empty(math.prod(entry.shape), _NUMBERS[NUMBER_FORMATS[entry.dtype]][0])
        with self.path.open("rb") as stream:
            stream.seek(start)
            if stream.readinto(stored.view(np.uint8).data) != end - start:
                raise Unportable(f"{self.path} was cut while it was read, in {name}")
        array = stored.reshape(entry.shape)
        if entry.dtype == "bfloat16":
            return (array.astype("<u4") << 16).view("<f4")
        return array

    def _read_header(self, stream: BinaryIO, size: int) -> None:
        first = stream.read(8)
        begins = stream.read(1) == b"{"  # a length may have a pickle's first bytes, too: 640 has
        stream.seek(8)
        if not begins and (first[:2] == b"PK" or first[:1] == b"\x80"):
            raise self._wrong("it is a pickle or an archive of torch, not safetensors", "its name should end in .pt")
        if first.startswith(b"version "):
            raise self._wrong("it is a pointer of Git LFS, not the file itself", "git lfs pull fetches it")
        length = int.from_bytes(first, "little")
        if len(first) < 8 or length > _MOST_HEADER:
            what = f"it begins with {first!r}" if first else "it is empty"
            raise self._wrong(f"it is no safetensors file, or it is cut off: {what}", "download it again")
        if length > size - 8:
            cut = f"its header should have {length:,} bytes, and the file has {size:,} in all"
            raise self._wrong(f"it is no safetensors file, or it is cut off: {cut}", "download it again")
        try:
            header = json.loads(stream.read(length))
            listed = {str(name): value for name, value in header.items() if name != "__metadata__"}
        except (ValueError, RecursionError, AttributeError):
            raise self._wrong("its header is not a JSON object") from None
        for name, value in listed.items():
            self._take(name, value, 8 + length, size)

    def _take(self, name: str, value: Any, base: int, size: int) -> None:
        """Check what the header says about one tensor, and keep it."""
        shown = one_line(name, 120)
        try:
            code, shape, (start, end) = value["dtype"], tuple(value["shape"]), value["data_offsets"]
            known = isinstance(code, str) and len(shape) <= _RANK and all(map(_is_extent, (*shape, start, end)))
        except (KeyError, TypeError, ValueError):
            known, code, shape, start, end = False, "", (), 0, 0
        if not known:
            raise self._wrong(f"its header does not say where {shown} is")
        if code not in _NUMBERS:
            advice = "convert it to a plain format first; quantized weights cannot be compared"
            raise self._wrong(f"{shown} has the number format {one_line(str(code), 20)}", advice)
        wanted = math.prod(shape) * np.dtype(_NUMBERS[code][0]).itemsize
        if end - start != wanted:
            raise self._wrong(f"{shown} has shape {shape} and {end - start:,} bytes, expected {wanted:,}")
        if base + end > size:
            end_ = f"it ends within {shown}: the header says {base + end:,} bytes, it has {size:,}"
            raise self._wrong(f"{end_}", "it is cut off; download it again")
        self.entries[name] = TensorEntry(_NUMBERS[code][1], shape)
        self._places[name] = base + start, base + end

    def _wrong(self, problem: str, *advice: str) -> Unportable:
        return Unportable(f"{self.path}: {problem}", advice=advice)


def _is_extent(value: Any) -> bool:
    """Whether a number of a header is one that a file can have; only those are multiplied."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0 and fits(value)


def write_safetensors(path: Path, entries: Mapping[str, TensorEntry], arrays: Iterable[tuple[str, Array]]) -> None:
    """Write a file from arrays that come in the order of `entries`; it appears under its name only when it is whole.

    Raises OSError if it cannot be written.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, entry in entries.items():
        end = place + math.prod(entry.shape) * np.dtype(_NUMBERS[NUMBER_FORMATS[entry.dtype]][0]).itemsize
        header[name] = {"dtype": NUMBER_FORMATS[entry.dtype], "shape": list(entry.shape), "data_offsets": [place, end]}
        place = end
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    folder = path.resolve().parent
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(len(head).to_bytes(8, "little") + head)
            for name, array in arrays:
                stream.write(_stored(array, entries[name].dtype).view(np.uint8).data)
            stream.flush()
            os.fsync(stream.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _stored(array: Array, dtype: str) -> Array:
    """Return the numbers in a format, in one piece; bfloat16 rounded to nearest, ties to even."""
    if dtype != "bfloat16":
        return np.ascontiguousarray(array, _NUMBERS[NUMBER_FORMATS[dtype]][0]).reshape(-1)
    bits = np.ascontiguousarray(array, "<f4").reshape(-1).view("<u4")
    return np.asarray((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
