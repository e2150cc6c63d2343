"""A copy of an implementation that any user can read, for the sandbox whose user could not read the original."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.scratch import held_folder
from conformkit.conformance.driver.worker.confinement import SAME_USER

__all__ = ["readable_copy"]

_MOST_FILES = 20_000
_MOST_BYTES = 1 << 30


@contextmanager
def readable_copy(own: Path | None, user: int) -> Iterator[Path | None]:
    """Yield a temporary copy, or None if that user can read the original."""
    if own is None or user == SAME_USER or _readable(own):
        yield None
        return
    with held_folder() as folder:
        folder.chmod(0o755)
        copy = folder / "copy"
        _copy(own, copy)
        yield copy


def _readable(own: Path) -> bool:
    """Whether everybody can read it; of a very large folder only a part is checked."""
    return all(_open_to_all(entry) for entry in islice(_entries(own), _MOST_FILES))


def _open_to_all(path: Path) -> bool:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return True  # it was removed meanwhile
    wanted = 0o005 if stat.S_ISDIR(mode) else 0o004
    return not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) or mode & wanted == wanted


def _entries(own: Path) -> Iterator[Path]:
    """Yield all files and folders, links as links."""
    waiting = [own]
    while waiting:
        path = waiting.pop()
        yield path
        if path.is_dir() and not path.is_symlink():
            waiting += path.iterdir()


def _copy(own: Path, copy: Path) -> None:
    """Copy folders, files and links; anything else does not belong in an implementation."""
    room = _MOST_BYTES
    for number, source in enumerate(_entries(own)):
        target = copy / source.relative_to(own) if source != own else copy
        status = source.lstat()
        room -= status.st_size
        if room < 0 or number >= _MOST_FILES:
            raise IsolationUnavailable(
                f"isolation sandbox would have to copy {own}, which is too big for that",
                f"let every user read it, so that no copy is needed: chmod -R o+rX {own}",
            )
        if stat.S_ISDIR(status.st_mode):
            target.mkdir()
            target.chmod(0o755)
        elif stat.S_ISLNK(status.st_mode):
            target.symlink_to(source.readlink())
        elif stat.S_ISREG(status.st_mode):
            shutil.copyfile(source, target, follow_symlinks=False)
            target.chmod(0o644 | (status.st_mode & 0o111))
            os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
