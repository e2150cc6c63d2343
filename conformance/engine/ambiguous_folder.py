"""Whether a folder of loose files holds one implementation, or several that have nothing to do with each other."""

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
"""With so many names of the contract in common, two folders are two implementations, not two parts of one."""


def obstacle(location: Location, exports: Collection[str]) -> str:
    """Return why a folder can't be taken for one implementation, or nothing; packages and files always can."""
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
    """Return the packages and folders beneath it that lie equally high, nothing higher up, with what each defines.

    A name found higher up is the one that is taken; equally high, the alphabet would decide.
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
    """Return the topmost package that a file is in, else its folder."""
    folder = path.parent
    while folder != root and (folder / "__init__.py").is_file() and (folder.parent / "__init__.py").is_file():
        folder = folder.parent
    return folder
