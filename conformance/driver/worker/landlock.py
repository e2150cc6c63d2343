"""Landlock: a process gives up write access outside a few folders, for itself and its children."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

__all__ = ["give_up_writing"]

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System call numbers, the same on every architecture."""
_VERSION = 1
_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_WRITE = 1 << 1
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 12
_MAKE_DEVICE = 1 << 6 | 1 << 11
_MOVE = 1 << 13
_TRUNCATE = 1 << 14
_SINCE = {1: _WRITE | _REMOVE | _MAKE | _MAKE_DEVICE, 2: _MOVE, 3: _TRUNCATE}
"""Access rights that count as writing, by the version that introduced them."""
_SCOPED_SINCE = 6
_SCOPES = 0b11
"""Connections to abstract unix sockets of others, and signals to others."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def give_up_writing(*, but_in: Sequence[str], devices: Sequence[str]) -> int:
    """Restrict this thread and its children. Return the version of landlock in force, 0 if there is none.

    Folders in `but_in` stay writable; in those of `devices`, existing files.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = _call(libc, _CREATE, None, 0, _VERSION)
    if version < 1:
        return 0
    handled = sum(rights for since, rights in _SINCE.items() if since <= version)
    ruleset = _Ruleset(handled, 0, _SCOPES)
    size = ctypes.sizeof(ruleset) if version >= _SCOPED_SINCE else ctypes.sizeof(ctypes.c_uint64)
    rules = _call(libc, _CREATE, ctypes.byref(ruleset), size, 0)
    if rules < 0:
        return 0
    try:
        allowed = [(folder, handled & ~_MAKE_DEVICE) for folder in but_in]
        allowed += [(folder, handled & (_WRITE | _TRUNCATE)) for folder in devices]
        done = all(_allow(libc, rules, folder, rights) for folder, rights in allowed)
        done = done and libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0 and _call(libc, _RESTRICT, rules, 0) == 0
        return version if done else 0
    finally:
        os.close(rules)


def _allow(libc: Any, rules: int, folder: str, rights: int) -> bool:
    descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Beneath(rights, descriptor)
        return bool(_call(libc, _ADD, rules, _BENEATH, ctypes.byref(rule), 0) == 0)
    finally:
        os.close(descriptor)


def _call(libc: Any, number: int, *arguments: Any) -> int:
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    return int(libc.syscall(ctypes.c_long(number), *words))
