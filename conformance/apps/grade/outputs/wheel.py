"""The installed kit as a wheel, made of its own files: nothing is built, and nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Iterator
from importlib import metadata
from importlib.resources import files
from pathlib import Path

from conformkit.conformance.versions import kit_version

__all__ = ["wheel"]

_PACKAGES = ("spec", "fixtures", "reference", "conformance", "cli")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of every file: the same kit gives the same bytes."""


def wheel() -> tuple[str, bytes]:
    """Return the name of the wheel and its bytes. Raises OSError, PackageNotFoundError."""
    version = kit_version().replace("-", "_")
    info = f"conformkit-{version}.dist-info"
    known = metadata.distribution("conformkit")
    members = dict(_modules())
    members[f"{info}/METADATA"] = _described(known, version)
    members[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: conformkit\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    members[f"{info}/entry_points.txt"] = (known.read_text("entry_points.txt") or "").encode()
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in sorted(members.items()))
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o100644 << 16
            archive.writestr(entry, data)
    return f"conformkit-{version}-py3-none-any.whl", stream.getvalue()


def _modules() -> Iterator[tuple[str, bytes]]:
    """Yield the files of the packages, as they are installed here or lie in a checkout."""
    for package in _PACKAGES:
        folder = Path(str(files(f"conformkit.{package}")))
        for file in sorted(folder.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                yield f"conformkit/{package}/{file.relative_to(folder).as_posix()}", file.read_bytes()


def _described(known: metadata.Distribution, version: str) -> bytes:
    """Return the metadata; an editable installation calls the file otherwise, and may be of an older version."""
    text = known.read_text("METADATA") or known.read_text("PKG-INFO") or ""
    lines = [f"Version: {version}" if line.startswith("Version: ") else line for line in text.split("\n")]
    return "\n".join(lines).encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
