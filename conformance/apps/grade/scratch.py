"""A temporary folder for one submission, a time limit for reading it, and texts without its path."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from conformkit.conformance.apps.grade.unpack import Refused

__all__ = ["held_folder", "new_folder", "time_limit", "without"]

_PREFIX = "conform-grade-"
_LOCK = ".held"
_NEW_SECONDS = 60.0
"""A folder may be without its lock for so long: it is being made."""


@contextmanager
def held_folder() -> Iterator[Path]:
    """A temporary folder that is locked while its run lives; those that killed runs left behind are removed first."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_left_over(left):
                shutil.rmtree(left, onerror=_insist)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with _locked(folder / _LOCK):
            yield folder
    finally:
        shutil.rmtree(folder, onerror=_insist)


def _is_left_over(folder: Path) -> bool:
    """Whether a folder of ours is held by nobody. Raises OSError."""
    found = folder.lstat()
    if folder.is_symlink() or not folder.is_dir() or found.st_uid != os.geteuid():
        return False
    lock = folder / _LOCK
    if lock.is_symlink() or not lock.is_file():
        return time.time() - found.st_mtime > _NEW_SECONDS
    try:
        with _locked(lock):
            return True
    except BlockingIOError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a folder. Raises BlockingIOError if another run holds it."""
    import fcntl  # noqa: PLC0415 - there is none on Windows, where nothing is graded

    with path.open("ab") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def without(folder: Path, name: str, value: Any) -> Any:
    """Return a tree of texts without the path of a temporary folder.

    Paths in it become relative; the folder itself is called `name`.
    """
    path = str(folder)
    if isinstance(value, str):
        return value.replace(path + "/", "").replace(path, name) if path in value else value
    if isinstance(value, dict):
        return {key: without(folder, name, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without(folder, name, item) for item in value)
    return value


@contextmanager
def new_folder(scratch: Path) -> Iterator[Path]:
    """A new folder that is removed at the end, even if a submission removed the permission to read it."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    try:
        yield folder.resolve()
    finally:
        shutil.rmtree(folder, onerror=_insist)


def _insist(function: Callable[[str], Any], path: str, error: Any) -> None:
    """Restore permissions that keep a file from being removed."""
    del error
    try:
        Path(path).parent.chmod(0o700)
        Path(path).chmod(0o700)
        function(path)
    except OSError:
        return


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise Refused if this takes longer; only in a main thread, which receives signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> NoReturn:
        raise Refused(f"reading it takes longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
