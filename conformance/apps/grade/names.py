"""Names of submissions: which file or folder is whose, and its name in file names."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping

from conformkit.conformance.text import one_line

__all__ = ["ARCHIVES", "OTHER_ARCHIVES", "SINGLE_FILES", "bare", "identity", "legible", "same", "twins"]

ARCHIVES: Mapping[str, str] = {".zip": "zip", ".tar": "tar", ".tar.gz": "tar", ".tgz": "tar"}
"""Kinds of archives by file extension."""
OTHER_ARCHIVES = (".rar", ".7z", ".gz", ".bz2", ".xz", ".zst", ".tar.bz2", ".tar.xz", ".tar.zst")
"""Extensions that students hand in although they are not supported."""

SINGLE_FILES = (".py", ".ipynb")
"""Extensions of files that are a submission by themselves."""

_LONGEST = 80
_LINE = 400
_TAG = 6


def bare(name: str) -> tuple[str, str]:
    """Split `alice.tar.gz` into the name and a known extension."""
    lower = name.lower()
    ends = [end for end in (*ARCHIVES, *OTHER_ARCHIVES, *SINGLE_FILES) if lower.endswith(end) and len(lower) > len(end)]
    end = max(ends, key=len, default="")
    return name[: len(name) - len(end)], end


def same(name: str) -> str:
    """Return a key that is equal for two names that some file system treats as the same."""
    return unicodedata.normalize("NFC", name).casefold()


def identity(name: str) -> str:
    """Return a name that is safe for files everywhere: the same one, or a plain one with a unique tag."""
    word = _plain(name)
    return word if word == name else f"{word}-{_tag(name)}"


def legible(name: str) -> str:
    """Return a name as text on one line, even if it is not valid text, has several lines or runs right to left."""
    return name if name.isprintable() else one_line(name, _LINE)


def twins(names: Iterable[str]) -> list[str]:
    """Return the keys, as `same` gives them, that several names share."""
    counts = Counter(same(name) for name in names)
    return [key for key, count in counts.items() if count > 1]


def _plain(name: str) -> str:
    words = re.sub(r"[^A-Za-z0-9_.-]+", "_", _ascii(name)).strip("_.-") or "submission"
    return words[:_LONGEST].rstrip("_.-")


def _ascii(name: str) -> str:
    return unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()


def _tag(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:_TAG]
