"""Where an implementation lives, found without importing it."""

from __future__ import annotations

import ast
import importlib.util
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

__all__ = ["Location", "locate", "mentions_torch", "sources"]

IMPORT_PATH = "CONFORM_IMPORT_PATH"
"""The variable with further folders to find implementations and what they import in, joined as in PYTHONPATH."""
_MAX_FILES = 500
_MAX_BYTES = 1 << 20
_ASIDE = frozenset({"setup.py", "conftest.py", "__main__.py", "noxfile.py"})


@dataclass(frozen=True, slots=True)
class Location:
    """An implementation: a module that can be imported, a `.py` file, or a folder.

    `name` is what it is imported as, `path` its file or folder (None: nothing is known but the name), `sys_path` what
    goes to the front of the worker's module path.
    """

    kind: Literal["module", "file", "folder"]
    name: str
    path: Path | None = None
    sys_path: tuple[Path, ...] = field(default=())

    def header(self) -> dict[str, Any]:
        """Return the form that goes over the wire."""
        path = None if self.path is None else str(self.path)
        return {"kind": self.kind, "name": self.name, "path": path, "sys_path": [str(p) for p in self.sys_path]}


def locate(text: str, folder: Path | None = None) -> Location:
    """Find what `text` names: an existing path, else a module beneath `folder` (default: the current one) or installed.

    Raises: FileNotFoundError when there is neither.
    """
    folder = (folder or Path.cwd()).resolve()
    found = _locate(text, folder)
    return replace(found, sys_path=(*found.sys_path, *_import_path()))


def _locate(text: str, folder: Path) -> Location:
    path = Path(text).expanduser()
    path = path if path.is_absolute() else folder / path
    if path.is_file():
        return _of_file(path.resolve())
    if path.is_dir():
        return _of_folder(path.resolve())
    if not all(part.isidentifier() for part in text.split(".")):
        message = f"no file or folder {text!r} in {folder}"
        raise FileNotFoundError(message)
    return _of_module(text, folder)


def sources(root: Path) -> Iterator[Path]:
    """Yield the Python files of an implementation, shallow ones first, without tests and scripts of its build."""
    if root.is_file():
        yield root
        return
    found: list[Path] = []
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "__")) and f not in {"tests", "test", "venv"})
        found += [Path(parent, name) for name in sorted(names) if _is_source(name)]
        if len(found) > _MAX_FILES:
            break
    yield from sorted(found[:_MAX_FILES], key=lambda path: (len(path.parts), path))


def parse(path: Path) -> ast.Module | None:
    """Parse a source file; None when it is too big or no Python."""
    try:
        if path.stat().st_size > _MAX_BYTES:
            return None
        return ast.parse(path.read_bytes(), str(path))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def mentions_torch(root: Path) -> bool:
    """Whether any source of the implementation imports torch, read off its text."""
    return any(_imports_torch(tree) for path in sources(root) if _has(path, b"torch") and (tree := parse(path)))


def _has(path: Path, word: bytes) -> bool:
    try:
        return word in path.read_bytes()
    except OSError:
        return False


def _is_source(name: str) -> bool:
    return name.endswith(".py") and name not in _ASIDE and not name.startswith("test_")


def _imports_torch(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "torch" for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "torch":
            return True
    return False


def _of_file(path: Path) -> Location:
    if path.name == "__init__.py":
        return _of_folder(path.parent)
    root, packages = _package_root(path.parent)
    return Location("file", ".".join([*packages, path.stem]), path, (root,))


def _of_folder(path: Path) -> Location:
    if not (path / "__init__.py").is_file():
        return Location("folder", path.name, path, (path, path.parent))
    root, packages = _package_root(path)
    return Location("folder", ".".join(packages), path, (root,))


def _package_root(folder: Path) -> tuple[Path, list[str]]:
    packages: list[str] = []
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        packages.insert(0, folder.name)
        folder = folder.parent
    return folder, packages


def _import_path() -> list[Path]:
    """Return the folders that the user's PYTHONPATH named, which the command took off its own path."""
    return [Path(entry) for entry in os.environ.get(IMPORT_PATH, "").split(os.pathsep) if entry]


def _of_module(name: str, folder: Path) -> Location:
    top, *rest = name.split(".")
    for entry in (folder, folder / "src", *_import_path(), *map(Path, sys.path)):
        for candidate in (entry.joinpath(top, *rest), entry.joinpath(top, *rest).with_suffix(".py")):
            if (candidate / "__init__.py").is_file() or candidate.is_file():
                return Location("module", name, candidate.resolve(), (entry.resolve(),))
    spec = importlib.util.find_spec(top)  # a top-level name: this imports nothing
    if spec is None:
        message = f"no module {name!r}, neither beneath {folder} nor installed"
        raise FileNotFoundError(message)
    origin = Path(spec.origin) if spec.origin and not rest else None
    path = origin.parent if origin is not None and origin.name == "__init__.py" else origin
    return Location("module", name, path)
