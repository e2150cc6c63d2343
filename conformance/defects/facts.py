"""Lists in the files of known mistakes, read without parsing them.

To parse all files takes four times as long, and a diagnosis needs few of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

__all__ = ["listed"]


def listed(*keys: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the id of each known mistake with the entries of these lists in its file, each list on one line."""
    lines = re.compile(rf"^(?:{'|'.join(keys)}) = (\[.*\])$", re.MULTILINE)
    for name, facts in _facts().items():
        yield name, [entry for line in lines.findall(facts) for entry in json.loads(line)]


@cache
def _facts() -> Mapping[str, str]:
    """Return what stands before the hint in each file, by the mistake's id."""
    return {
        file.name.removesuffix(".toml"): file.read_text(encoding="utf-8").partition("\n[hint]")[0]
        for folder in files(__package__).iterdir()
        for file in (folder.iterdir() if folder.is_dir() else ())
        if file.name.endswith(".toml")
    }
