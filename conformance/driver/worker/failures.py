"""Turn exceptions of an implementation into error replies."""

from __future__ import annotations

import traceback

from conformkit.conformance.driver.errors import FailureKind
from conformkit.conformance.driver.wire.arrays import OutputError
from conformkit.conformance.driver.wire.text import shorten
from conformkit.conformance.driver.worker.frames_of import Place
from conformkit.conformance.driver.worker.frameworks.base import NoGhostError, RequestError, UnsupportedError
from conformkit.conformance.driver.worker.loading import LoadError

__all__ = ["failure", "where"]

_MESSAGE_LIMIT = 2000

_ALLOCATOR = ("can't allocate memory", "not enough memory", "cannot allocate memory", "out of memory")


def failure(error: BaseException, place: Place, *, loading: bool = False) -> dict[str, str]:
    """Return kind, type, its nearest built-in base, message and place of an exception."""
    kind = _kind(error, loading=loading)
    name = type(error).__name__[:200]
    if isinstance(error, RequestError | OutputError | UnsupportedError | LoadError):
        name = name.removesuffix("Error").lower()
    text = _text(error)
    message = f"called sys.exit({text})" if kind == "exit" else text
    return {
        "kind": kind, "type": name, "base": _base(error), "message": shorten(message, _MESSAGE_LIMIT),
        "where": where(error, place),
    }  # fmt: skip


def where(error: BaseException, place: Place) -> str:
    """Return the implementation's own innermost frame, `mypkg/attention.py:31 in forward`, or nothing."""
    if isinstance(error, SyntaxError) and error.filename and (file := place(error.filename)):
        return f"{file}:{error.lineno}"
    innermost = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if file := place(frame.f_code.co_filename):
            innermost = f"{file}:{line} in {frame.f_code.co_name}"
    return innermost[:500]


def _base(error: BaseException) -> str:
    """Return the name of the built-in class that an exception is or derives from."""
    return next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")


def _kind(error: BaseException, *, loading: bool) -> FailureKind:
    if isinstance(error, MemoryError) or _is_allocator(error):
        return "memory"
    if isinstance(error, SystemExit):
        return "exit"
    kinds: dict[type[BaseException], FailureKind] = {
        RequestError: "request",
        OutputError: "output",
        UnsupportedError: "unsupported",
        NoGhostError: "unsupported",
        LoadError: "load",
    }
    return kinds.get(type(error), "load" if loading else "exception")


def _is_allocator(error: BaseException) -> bool:
    if not isinstance(error, RuntimeError | OSError):
        return False
    message = _text(error).lower()
    return any(phrase in message for phrase in _ALLOCATOR)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001
        return "(it has no message that can be shown)"
