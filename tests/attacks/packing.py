"""Pack an archive as its attack describes it. Nothing is stored: a bomb is created when it is needed."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .attack import FOLDER, Attack

__all__ = ["pack"]

_ENDINGS = {"zip": ".zip", "tar": ".tar", "tar.gz": ".tar.gz", "raw": ".zip"}
_TYPES = {"link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "device": tarfile.CHRTYPE, "pipe": tarfile.FIFOTYPE}
_LINK_MODE = 0o120777 << 16
_CENTRAL, _LOCAL = b"PK\x01\x02", b"PK\x03\x04"


@dataclass(frozen=True, slots=True)
class Member:
    """One member, as described: a file, a link, a hard link, a device or a pipe."""

    name: str
    content: bytes
    type: str
    to: str
    pax: Mapping[str, str]


def pack(attack: Attack, folder: Path, name: str) -> Path:
    """Write the archive into a folder, and return its path."""
    recipe = attack.archive
    path = folder / f"{name}{_ENDINGS[recipe['form']]}"
    path.write_bytes(_PACKERS[recipe["form"]](recipe))
    return path


def _members(recipe: Mapping[str, Any]) -> Iterator[Member]:
    for member in recipe["members"]:
        for number in range(member.get("times", 1)):
            name = member["name"].replace("{n}", str(number)).replace("{nul}", "\0")
            name = name * member["deep"] + "f.py" if "deep" in member else name
            yield Member(
                name, _content(member), member.get("type", "file"), member.get("to", ""), member.get("pax", {})
            )


def _content(member: Mapping[str, Any]) -> bytes:
    if "base" in member:
        return (FOLDER / "base" / f"{member['base']}.py").read_bytes()
    return bytes(member["zeros"]) if "zeros" in member else str(member.get("text", "")).encode()


# --- zip --------------------------------------------------------------------------------------------------------------


def _zip(recipe: Mapping[str, Any]) -> bytes:
    packed = _zipped(_members(recipe))
    for _ in range(recipe.get("wrapped", 0)):
        packed = _zipped(iter([Member("inner.zip", packed, "file", "", {})]))
    if "overlapping" in recipe:
        packed = _overlapping(packed, recipe["overlapping"])
    if "claims" in recipe:
        packed = _patched(packed, {_CENTRAL: 24, _LOCAL: 22}, struct.pack("<I", recipe["claims"]))
    if "offset" in recipe:
        packed = _far(packed, recipe["offset"])
    if recipe.get("encrypted"):
        packed = _patched(packed, {_CENTRAL: 8, _LOCAL: 6}, b"\x01")
    if recipe.get("names") == "broken":
        packed = packed.replace("\u00e9".encode(), b"\xff\xff")
    if "comment" in recipe:
        second = _zipped(_members({"members": recipe["comment"]}))
        packed = packed[:-2] + struct.pack("<H", len(second)) + second
    return recipe.get("before", "").encode() + packed[: len(packed) - recipe.get("cut", 0)]


def _zipped(members: Iterator[Member]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, member in enumerate(members):
            info = zipfile.ZipInfo(f"m{number}")  # ZipFile would warn about a duplicate name
            info.filename = member.name
            info.compress_type = zipfile.ZIP_DEFLATED
            if member.type == "link":
                info.external_attr = _LINK_MODE
            archive.writestr(info, member.to.encode() if member.type == "link" else member.content)
            archive.NameToInfo.clear()
    return stream.getvalue()


def _overlapping(packed: bytes, times: int) -> bytes:
    """Let the table of contents name one member that many times."""
    start = packed.index(_CENTRAL)
    end = packed.index(b"PK\x05\x06")
    entry = packed[start:end]
    table = b"".join(_renamed(entry, number) for number in range(times))
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, times, times, len(table), start, 0)
    return packed[:start] + table + tail


def _far(packed: bytes, offset: int) -> bytes:
    """Let the table of contents say where its first member begins, in the 64 bits of an extra field."""
    start = packed.index(_CENTRAL)
    end = packed.index(b"PK\x05\x06")
    extra = struct.pack("<HHQ", 1, 8, offset)
    entry = bytearray(packed[start:end])
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    table = bytes(entry) + extra
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(table), start, 0)
    return packed[:start] + table + tail


def _renamed(entry: bytes, number: int) -> bytes:
    """Return an entry of the table of contents under another name of the same length."""
    length = struct.unpack("<H", entry[28:30])[0]
    return entry[:46] + f"{number:0{length}d}"[:length].encode() + entry[46 + length :]


def _patched(packed: bytes, places: Mapping[bytes, int], value: bytes) -> bytes:
    """Overwrite a field in the table of contents and before the members."""
    patched = bytearray(packed)
    for mark, offset in places.items():
        at = patched.find(mark)
        while at >= 0:
            patched[at + offset : at + offset + len(value)] = value
            at = patched.find(mark, at + 4)
    return bytes(patched)


# --- tar --------------------------------------------------------------------------------------------------------------


def _tar(recipe: Mapping[str, Any]) -> bytes:
    stream = io.BytesIO()
    mode = "w:gz" if recipe["form"] == "tar.gz" else "w"
    with tarfile.open(fileobj=stream, mode=mode, format=tarfile.PAX_FORMAT) as archive:
        for member in _members(recipe):
            info = tarfile.TarInfo(member.name)
            info.type, info.linkname = _TYPES.get(member.type, tarfile.REGTYPE), member.to
            info.devmajor, info.devminor = (1, 5) if member.type == "device" else (0, 0)
            info.size, info.pax_headers = len(member.content), dict(member.pax)
            archive.addfile(info, io.BytesIO(member.content))
    packed = stream.getvalue()
    return packed[: len(packed) - recipe.get("cut", 0)]


def _raw(recipe: Mapping[str, Any]) -> bytes:
    return str(recipe["raw"]).encode()


_PACKERS = {"zip": _zip, "tar": _tar, "tar.gz": _tar, "raw": _raw}
