"""What somebody else's text may become: a file of theirs, or nothing; a whole number that fits, or nothing.

A name in a traceback, in conform.toml or in a report read back is text that its author chose. It may be longer than any
file's name, hold what no name may hold, lead out of its folder, or through a link to itself.
"""

from __future__ import annotations

import errno
from pathlib import Path

__all__ = ["fits", "inside", "own_file"]

_LONGEST_NAME, _LONGEST_PATH = 255, 4096
"""In bytes: what file systems take at most."""
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.ENFILE, errno.EMFILE, errno.ENOMEM}
"""Errors that are not about the text."""
_INT64_END = 1 << 63


def own_file(base: Path, text: str, within: Path) -> Path | None:
    """Return the regular file that a text names from `base` on, if it lies in `within` once links are followed."""
    found = inside(base, text, within)
    return found if found is not None and found.is_file() else None


def inside(base: Path, text: str, within: Path) -> Path | None:
    """Return the file or folder that a text names from `base` on, if there is one in `within` once links are followed.

    Raises OSError only where that is not about the text: no memory, too many open files.
    """
    if not _may_name(text):
        return None
    try:
        found = (base / text).resolve(strict=True)
        return found if found.is_relative_to(within.resolve()) else None
    except (RuntimeError, ValueError):  # a link to itself
        return None
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise
        return None


def fits(value: int) -> bool:
    """Whether a whole number has at most 64 bits, sign included, as TOML promises."""
    return -_INT64_END <= value < _INT64_END


def _may_name(text: str) -> bool:
    if not text or not text.isprintable():
        return False
    parts = [part.encode("utf-8", "surrogatepass") for part in text.replace("\\", "/").split("/")]
    return len(text.encode("utf-8", "surrogatepass")) <= _LONGEST_PATH and all(len(p) <= _LONGEST_NAME for p in parts)
