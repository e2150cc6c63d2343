"""A temporary folder for one submission, a time limit for reading it, and texts without its path."""

from __future__ import annotations

import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from conformkit.conformance.apps.grade.unpack import Refused
from conformkit.conformance.driver.scratch import PREFIX, remove, sweep
from conformkit.conformance.driver.scratch import held_folder as held

__all__ = ["held_folder", "new_folder", "time_limit", "without"]

_PREFIX = f"{PREFIX}grade-"


@contextmanager
def held_folder() -> Iterator[Path]:
    """A temporary folder that is locked while its run lives; those that killed runs left behind are removed first."""
    sweep()
    with held(_PREFIX) as folder:
        yield folder


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
        remove(folder)


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
