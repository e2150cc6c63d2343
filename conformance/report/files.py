"""Report files: rejected before the run if they can't be written, and never left half written."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

__all__ = ["obstacle", "write"]


def obstacle(path: Path) -> str:
    """Return why a report can't be written there and what to do, or nothing.

    Checked before a run, so that minutes of work are not lost to a typo.
    """
    try:
        return _obstacle(path, path.parent)
    except OSError as error:  # a name that is too long, a folder without read permission
        return f"{path} cannot be read: {error.strerror or error}"


def _obstacle(path: Path, folder: Path) -> str:
    if not folder.exists():
        return f"the folder {folder} does not exist; create it with: mkdir -p {folder}"
    if not folder.is_dir():
        return f"{folder} is a file, not a folder; choose another path"
    if path.is_dir():
        return f"{path} is a folder; name a file in it"
    places = [path, folder] if path.is_file() else [path] if path.exists() else [folder]  # a file is replaced
    if not all(os.access(place, os.W_OK) for place in places):
        return f"no permission to write {path}; choose another path"
    return ""


def write(path: Path, content: str | bytes) -> None:
    """Replace the file by this content in one step: a reader sees either the old or the new content.

    Devices and pipes (`/dev/null`) are written to, not replaced; a link stays a link.
    """
    target, data = path.resolve(), content.encode() if isinstance(content, str) else content
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        target.write_bytes(data)
        return
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise
