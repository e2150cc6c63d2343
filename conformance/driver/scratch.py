"""Folders of the kit's own: temporary ones, each locked while its process lives, and one in the user's cache."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

__all__ = ["PREFIX", "cache_folder", "held_folder", "remove", "sweep"]

PREFIX = "conform-"
_LOCK, _UNLOCKED, _WITHOUT = ".held", ".new", ".unlocked"
_NEW_SECONDS = 60.0
"""A folder may be without its lock for so long: it is being made."""


def cache_folder() -> Path:
    """Return the folder for what is kept from run to run: in the user's cache, never next to the judged code."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "conformkit"


@contextmanager
def held_folder(prefix: str = PREFIX) -> Iterator[Path]:
    """A temporary folder that is locked while its process lives. What is in it goes with it, its lock `.held` too."""
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        with _locked(folder):
            yield folder
    finally:
        remove(folder)


def sweep() -> None:
    """Remove the temporary folders that processes of this user left behind when they were killed."""
    with suppress(OSError):
        for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with suppress(OSError):
                if _is_left_over(left):
                    remove(left)


def remove(folder: Path) -> None:
    """Remove a folder whatever was done to it, as far as that is possible; of a link, the link only."""
    with suppress(OSError, RecursionError):
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder, onerror=partial(_insist, folder))


def _is_left_over(folder: Path) -> bool:
    """Whether it is a folder of ours that nobody holds. Raises OSError.

    Without a lock, it is one only if nothing but one in the making is there, and not new: a user's own folder may be
    called like ours.
    """
    found = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or not hasattr(os, "geteuid") or found.st_uid != os.geteuid():
        return False
    lock = folder / _LOCK
    if lock.is_symlink() or not lock.is_file():
        return time.time() - found.st_mtime > _NEW_SECONDS and {p.name for p in folder.iterdir()} == {_UNLOCKED}
    with lock.open("ab") as stream:
        return _holds(stream.fileno())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which appears in it locked: nobody can take it for one that is left over."""
    with contextlib.ExitStack() as closing:
        lock = os.open(folder / _UNLOCKED, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        closing.callback(os.close, lock)
        (folder / _UNLOCKED).rename(folder / (_LOCK if _holds(lock) else _WITHOUT))
        yield


def _holds(descriptor: int) -> bool:
    """Lock an open file, and return whether that was possible."""
    try:
        import fcntl  # noqa: PLC0415 - there is none on Windows
    except ImportError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False  # another process holds it, or this file system has no locks
    return True


def _insist(folder: Path, function: Callable[[str], Any], path: str, error: Any) -> None:
    """Restore permissions that keep a file from being removed; never those of what a link leads to, or of others."""
    del error
    with suppress(OSError):
        if Path(path) != folder:  # what holds the folder is not ours: another process may have removed it
            Path(path).parent.chmod(0o700)
        if not Path(path).is_symlink():
            Path(path).chmod(0o700)
        if function in {os.unlink, os.rmdir}:
            function(path)
        else:  # it could not be looked into
            shutil.rmtree(path, ignore_errors=True)
