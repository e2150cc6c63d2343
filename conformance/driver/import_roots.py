"""Folders from which the imports of loose code resolve, as they do where its author runs it. Standard library only."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

__all__ = ["further_roots", "reach"]

_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*)[ \t]*([\w.]*)[ \t]+import\b|import[ \t]+([\w.]+(?:[ \t]*,[ \t]*[\w.]+)*))",
    re.MULTILINE,
)
_TOPS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
"""What the highest folder of a project holds."""
_HIGHEST = 6
"""How many folders above a file are looked at."""


def further_roots(sources: Iterable[tuple[Path, bytes]], known: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders to search for modules besides those `known`: the nearest from which absolute imports resolve.

    A name that Python or an installed package has is not looked for: a folder may be called like a library.
    """
    found: list[Path] = []
    settled: set[str] = set()
    for path, content in sources:
        for name in _absolute(content) - settled:
            if any(_holds(folder, name) for folder in (*known, *found)) or _is_installed(name):
                settled.add(name)
                continue
            place = next((folder for folder in _around(path.parent) if _holds(folder, name)), None)
            if place is not None:
                found.append(place)
    return tuple(dict.fromkeys(found))


def reach(sources: Iterable[tuple[Path, bytes]], folder: Path) -> int:
    """Return how many folders relative imports go up at most, from a file that lies in `folder` itself; 0 for none."""
    return max((_deepest(content) - len(path.parent.relative_to(folder).parts) for path, content in sources), default=0)


def _absolute(content: bytes) -> set[str]:
    """Return the first parts of the modules that a source imports."""
    found: set[str] = set()
    for dots, module, modules in _IMPORT.findall(content):
        named = modules.split(b",") if modules else [] if dots else [module]
        found |= {name.strip().split(b".")[0].decode(errors="replace") for name in named}
    return {name for name in found if name.isidentifier()} - sys.stdlib_module_names


def _deepest(content: bytes) -> int:
    return max((len(dots) for dots, _, _ in _IMPORT.findall(content)), default=0)


def _around(folder: Path) -> Iterator[Path]:
    """Yield a folder, those above it up to the top of the project, and the `src` of each."""
    for place in (folder, *list(folder.parents)[:_HIGHEST]):
        if place == Path(place.anchor):
            return
        yield place
        yield place / "src"
        if any((place / name).exists() for name in _TOPS):
            return


def _holds(folder: Path, name: str) -> bool:
    try:
        return (folder / f"{name}.py").is_file() or (folder / name).is_dir()
    except OSError:
        return False


def _is_installed(name: str) -> bool:
    try:
        return name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
