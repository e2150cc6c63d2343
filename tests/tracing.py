"""In each process of a recording: which functions of the kit run, and which of its data files are opened.

`pytest --record` (tests/recording.py) has every interpreter of its environment load this file at its start, since a
judged package runs in processes that no variable reaches. A process writes to the folder of the nearest ancestor that
runs tests, line by line, because most are killed in the end. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from types import CodeType, FrameType
from typing import Any

__all__ = ["ROOT", "begin", "end", "follow"]

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_PARTS = tuple(f"{ROOT}{part}{os.sep}" for part in ("cli", "conformance", "fixtures", "reference", "spec"))
_CODE = f"{os.sep}__pycache__{os.sep}"

_seen: dict[int, CodeType] = {}
"""By identity, since code compares by content; kept, so that no identity is used again."""
_sink = ""
"""The file that a child writes to; empty in the process that runs tests, which keeps what it sees."""
_kept: set[str] = set()
_quiet = threading.local()


def begin() -> None:
    """Forget what ran, in the process that runs tests."""
    if not hasattr(_quiet, "on"):
        sys.addaudithook(_opened)
        _quiet.on = False
    _seen.clear()
    _kept.clear()
    _trace()


def end() -> set[str]:
    """Return what ran since `begin`, as `file::function` or as the file alone."""
    return set(_kept)


def follow(folder: str) -> None:
    """Write what runs in this process to the folder of the ancestor that runs tests, if there is one."""
    global _sink  # noqa: PLW0603 - one per process
    pid = os.getpid()
    while pid > 1:
        if os.path.isdir(os.path.join(folder, str(pid))):
            _sink = os.path.join(folder, str(pid))
            os.register_at_fork(after_in_child=_seen.clear)
            sys.addaudithook(_opened)
            _trace()
            return
        pid = _parent(pid)


def _parent(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _trace() -> None:
    threading.settrace(_called)
    sys.settrace(_called)


def _called(frame: FrameType, _event: str, _argument: Any) -> None:
    code = frame.f_code
    key = id(code)
    if key in _seen:
        return
    _seen[key] = code
    if code.co_filename.startswith(_PARTS):
        name = code.co_qualname.partition(".<locals>")[0]
        if not name.endswith(">"):  # neither a lambda nor a comprehension of a module, nor the module itself
            _note(f"{code.co_filename[len(ROOT) :]}::{name}")


def _opened(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not isinstance(arguments[0], str) or getattr(_quiet, "on", False):
        return
    path = arguments[0]
    if path.startswith(_PARTS) and not path.endswith(".py") and _CODE not in path:
        _note(path[len(ROOT) :])


def _note(text: str) -> None:
    if not _sink:
        _kept.add(text)
        return
    _quiet.on = True
    with contextlib.suppress(Exception):
        with open(os.path.join(_sink, "current"), encoding="utf-8") as file:
            number = file.read()
        file = os.open(os.path.join(_sink, f"{number}.ran"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            os.write(file, f"{text}\n".encode())
        finally:
            os.close(file)
    _quiet.on = False
