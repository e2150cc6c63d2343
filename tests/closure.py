"""Which files of this repository a module depends on: those it imports, at the top or in functions, and their data."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from .tiers import ROOT

__all__ = ["closure", "within"]

_DATA = "importlib.resources"
"""A module that imports it reads files of its own folder."""


def closure(roots: Iterable[str], apart: Iterable[str] = ()) -> frozenset[str]:
    """Return these files, what they import of this repository, and the data next to modules that read data.

    Paths are relative to the root. `apart` are folders whose data is left out, because whoever asks knows which of it
    is read; modules in them count like others.
    """
    found: set[str] = set()
    waiting, apart = list(roots), tuple(apart)
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += _imported(file)
            found.update(data for data in _data(file) if not data.startswith(apart))
    return frozenset(found)


def within(folder: str) -> list[str]:
    """Return all files in a folder, or the file itself, without what Python and tools leave there."""
    place = ROOT / folder
    files = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [_relative(file) for file in files if file.is_file() and "__pycache__" not in file.parts]


@cache
def _imported(file: str) -> tuple[str, ...]:
    """Return the files that a module imports, and what Python imports before it: the packages that hold it."""
    if not file.endswith(".py"):
        return ()
    now, _ = _imports(file)
    held = [_relative(place) for folder in (ROOT / file).parents if (place := folder / "__init__.py").is_file()]
    return (*held, *(path for base, name in now for path in _meant(base, name)))


def _meant(base: str, name: str) -> Iterator[str]:
    """Yield the files of `from base import name`: a module, or what a package imports when it is asked for a name."""
    yield from _files(base)
    if name and not (named := _files(f"{base}.{name}")[len(_files(base)) :]):
        package = ROOT.joinpath(*base.split("."), "__init__.py")
        later = _imports(_relative(package))[1] if base and package.is_file() else ()
        yield from (path for pair in later for path in _files(".".join(filter(None, pair))))
    elif name:
        yield from named


@cache
def _imports(file: str) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Return what a module imports as it runs, and what only for types or when a package is asked for a name."""
    told = list(_told(ast.parse((ROOT / file).read_bytes()).body, file))
    return tuple(pair for pair, later in told if not later), tuple(pair for pair, later in told if later)


def _told(block: Iterable[ast.AST], file: str, *, later: bool = False) -> Iterator[tuple[tuple[str, str], bool]]:
    """Yield what the statements of a block import, and whether only later; expressions import nothing."""
    for node in block:
        inner = later or _is_for_later(node)
        yield from ((pair, inner) for pair in _names(node, file))
        for part in ("body", "handlers", "cases", "orelse", "finalbody"):
            yield from _told(getattr(node, part, ()), file, later=inner)


def _is_for_later(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.dump(node.test)
    return isinstance(node, ast.FunctionDef) and node.name == "__getattr__" and node.col_offset == 0


def _names(node: ast.AST, file: str) -> Iterator[tuple[str, str]]:
    """Yield what an import names, from the root: `from a import b` means a, and perhaps a.b."""
    if isinstance(node, ast.Import):
        yield from ((alias.name.removeprefix("conformkit."), "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = (node.module or "").removeprefix("conformkit.")
        if node.level:
            base = ".".join(filter(None, [*Path(file).parts[: -node.level], node.module]))
        yield from ((base, alias.name) for alias in node.names)


@cache
def _files(name: str) -> tuple[str, ...]:
    """Return the file of a module or package, and of the packages that hold it; nothing for what others have made."""
    first = name.rpartition(".")[0]
    path = ROOT.joinpath(*name.split("."))
    found = next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)
    return (*(_files(first) if first else ()), *([_relative(found)] if found else ()))


@cache
def _data(file: str) -> tuple[str, ...]:
    if not file.endswith(".py") or _DATA not in {base for pairs in _imports(file) for base, _ in pairs}:
        return ()
    return tuple(path for path in within(str(Path(file).parent)) if not path.endswith(".py"))


def _relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
