"""How a process asks the system for memory."""

from __future__ import annotations

import contextlib
import ctypes
import sys

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_MIB = 1 << 20


def keep_freed_memory() -> None:
    """On Linux, let arrays below 32 MiB reuse what earlier ones left, instead of giving it back each time.

    Otherwise the kernel clears the pages of every array of a few hundred kilobytes, a twentieth of a run.
    """
    if not sys.platform.startswith("linux"):
        return
    with contextlib.suppress(OSError, AttributeError):  # another C library than that of GNU
        options = ctypes.CDLL(None).mallopt
        options(_MMAP_THRESHOLD, 32 * _MIB)
        options(_TRIM_THRESHOLD, 256 * _MIB)
        options(_TOP_PAD, 16 * _MIB)
