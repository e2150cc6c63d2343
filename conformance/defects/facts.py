"""Lists in the files of known mistakes, read without parsing them.

To parse all files takes four times as long, and a diagnosis needs few of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["listed", "places"]


@cache
def places() -> Mapping[str, tuple[str, Traversable]]:
    """Return the folder and the file of each known mistake, by its id, in the order of folders and files."""
    folders = sorted((f for f in files(__package__).iterdir() if f.is_dir()), key=lambda f: f.name)
    found: dict[str, tuple[str, Traversable]] = {}
    for folder in folders:
        for file in sorted((f for f in folder.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name):
            name = file.name.removesuffix(".toml")
            if name in found:
                raise ValueError(f"{folder.name}/{file.name}: the id {name} is taken in {found[name][0]}/")
            found[name] = (folder.name, file)
    return found


def listed(*keys: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the id of each known mistake with the entries of these lists in its file, each list on one line."""
    lines = re.compile(rf"^(?:{'|'.join(keys)}) = (\[.*\])$", re.MULTILINE)
    for name, facts in _facts().items():
        yield name, [entry for line in lines.findall(facts) for entry in json.loads(line)]


@cache
def _facts() -> Mapping[str, str]:
    """Return what stands before the hint in each file, by the mistake's id."""
    return {name: file.read_text(encoding="utf-8").partition("\n[hint]")[0] for name, (_, file) in places().items()}
