"""Whether a folder of loose files holds one implementation, or several unrelated ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from itertools import combinations
from pathlib import Path

from conformkit.conformance.driver.location import Location, parse, read_source, sources
from conformkit.conformance.driver.worker.loading import defined
from conformkit.conformance.text import listed

__all__ = ["obstacle"]

_SHARED = 3
"""If two folders share this many names of the contract, they are two implementations, not two parts of one."""


def obstacle(location: Location, exports: Collection[str]) -> str:
    """Return why a folder can't be one implementation, or nothing; packages and files always can."""
    root = location.path
    if location.kind != "folder" or root is None or (root / "__init__.py").is_file():
        return ""
    if root == Path(root.anchor):
        return f"{root} is the whole disk, not an implementation"
    for one, other in combinations(_homes(root, exports).items(), 2):
        shared = [name for name in exports if name in one[1] and name in other[1]]
        if len(shared) >= _SHARED and any(one[1][name] != other[1][name] for name in shared):
            return f"{one[0].relative_to(root)} and {other[0].relative_to(root)} in it both define {listed(shared, 2)}"
    return ""


def _homes(root: Path, exports: Collection[str]) -> dict[Path, dict[str, bytes]]:
    """Return the packages and folders at the highest level that defines anything, with what each defines.

    A name found at a higher level is used; at the same level, alphabetical order would decide.
    """
    found: dict[Path, dict[str, bytes]] = defaultdict(dict)
    for path in sources(root):
        content = read_source(path) or b""
        if any(name.encode() in content for name in exports):
            home = _home(path, root)
            found[home] |= {name: content for name in defined(parse(path)) if name in exports}
    least = min((len(home.parts) for home, names in found.items() if names), default=0)
    return {home: names for home, names in found.items() if names and len(home.parts) == least}


def _home(path: Path, root: Path) -> Path:
    """Return the topmost package of a file, else its folder."""
    folder = path.parent
    while folder != root and (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder
