"""Settings under which a check runs, in words: by the names that the loop over them gives them."""

from __future__ import annotations

import linecache
import re
from types import FrameType

__all__ = ["names_at", "said"]

_LOOP = re.compile(r"\s*for ([\w, ]+) in \w+\(")


def names_at(frame: FrameType) -> list[str]:
    """Return what the `for` that a frame is at calls each setting; nothing where its source is not there."""
    match = _LOOP.match(linecache.getline(frame.f_code.co_filename, frame.f_lineno))
    return match[1].split(", ") if match else []


def said(setting: object, names: list[str]) -> str:
    """Return `queries = 3, keys = 7`; a table says its own names."""
    if isinstance(setting, dict) and setting:
        return ", ".join(f"{name} = {value}" for name, value in setting.items())
    if isinstance(setting, tuple) and len(setting) == len(names) > 1:
        return ", ".join(f"{name} = {value}" for name, value in zip(names, setting, strict=True))
    return f"{names[0]} = {setting}" if len(names) == 1 else str(setting)
