"""Where an implementation lives, found without importing it."""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from conformkit.conformance.driver import notebooks, syntax
from conformkit.conformance.driver.import_roots import further_roots, reach

__all__ = ["Location", "locate", "mentions", "mentions_torch", "parse", "read_source", "sources"]

IMPORT_PATH = "CONFORM_IMPORT_PATH"
"""The variable with further folders to search for implementations and their imports, joined as in PYTHONPATH."""
_MAX_FILES = 500
_MAX_FOLDERS = 2000
_MAX_DEPTH = 20
_MAX_BYTES = 1 << 20
_MAX_READ = 32 << 20
_MAX_PARSED = 1 << 20
_ASIDE = frozenset({"setup.py", "conftest.py", "__main__.py", "noxfile.py"})
_OF_TENSORS = re.compile(rb"\.(?:masked_fill_?|unsqueeze|softmax|log_softmax|contiguous|permute|type_as|bmm)\(")
"""Methods that torch's tensors have and NumPy's arrays have not."""
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
_OTHERS = ("numpy", "jax", "tensorflow", "cupy", "mlx")
"""Libraries of arrays: code that imports one of them, and not torch, is not torch's."""


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
    apart: bool = False
    """Whether it may not import the kit's own modules."""

    def header(self) -> dict[str, Any]:
        """Return the form that is sent over the wire."""
        path = None if self.path is None else str(self.path)
        places = [str(place) for place in self.sys_path]
        return {"kind": self.kind, "name": self.name, "path": path, "sys_path": places, "apart": self.apart}


def locate(text: str, folder: Path | None = None, *, beyond: bool = True) -> Location:
    """Find what `text` names: an existing path, else a module below `folder` (default: the current one) or installed.

    Where its imports lead `beyond` it, the folders from which they resolve are searched for modules too.

    Raises: FileNotFoundError when there is neither.
    """
    folder = (folder or Path.cwd()).resolve()
    found = _locate(text, folder)
    found = _with_roots(found) if beyond else found
    return replace(found, sys_path=(*found.sys_path, *_import_path()))


def _locate(text: str, folder: Path) -> Location:
    try:
        path = folder / Path(text).expanduser()  # `/` keeps an absolute one
        if path.is_file():
            return _of_file(path.resolve())
        if path.is_dir():
            return _of_folder(path.resolve())
        odd = "is a broken link" if path.is_symlink() else "is neither a file nor a folder" if path.exists() else ""
    except FileNotFoundError:
        raise
    except (OSError, RuntimeError) as error:  # too long, not to be read, the home of nobody
        message = f"{text[:200]!r} cannot be read: {getattr(error, 'strerror', None) or error}"
        raise FileNotFoundError(message) from None
    if odd:
        message = f"{text!r} {odd}"
        raise FileNotFoundError(message)
    if text.endswith(".py") or not all(part.isidentifier() for part in text.split(".")):
        place = "" if Path(text).is_absolute() else f" in {folder}"
        message = f"no file or folder {text!r}{place}{_nearest(path)}"
        raise FileNotFoundError(message)
    return _of_module(text, folder)


def _nearest(path: Path) -> str:
    """Return the nearest existing name, as the end of a sentence."""
    import difflib  # noqa: PLC0415 - only where something is wrong

    folders, files = _entries(path.parent)
    names = [*(folder.name for folder in folders), *(file.name if path.suffix else file.stem for file in files)]
    near = difflib.get_close_matches(path.name, names, n=1, cutoff=0.7)
    return f"; nearest: {near[0]}" if near else ""


def sources(root: Path) -> Iterator[Path]:
    """Yield the Python files of an implementation, shallow ones first, without tests and scripts of its build.

    The code is untrusted: beyond a maximum number or depth of files and folders the rest is left out, and so are
    links that lead outside.
    """
    if root.is_file():
        yield root
        return
    found: list[Path] = []
    waiting = [(root, 0)]
    for folder, depth in waiting:  # grows during the loop
        folders, files = _entries(folder)
        found += [path for path in files if not path.is_symlink() or _stays(path, root)]
        if len(found) > _MAX_FILES:
            break
        if depth < _MAX_DEPTH and len(waiting) < _MAX_FOLDERS:
            waiting += [(inner, depth + 1) for inner in folders]
    yield from sorted(found[:_MAX_FILES], key=lambda path: (len(path.parts), path))


def read_source(path: Path) -> bytes | None:
    """Return the content of a source file; None if it is too big, unreadable or not a regular file."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as stream:
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                return None
            content = stream.read(_MAX_BYTES + 1)
    except OSError:
        return None
    if len(content) > _MAX_BYTES:
        return None
    return notebooks.code_of(content) if path.suffix == notebooks.SUFFIX else content


def parse(path: Path) -> ast.Module | None:
    """Parse a source file; None if it is too big or not Python."""
    content = read_source(path)
    return None if content is None else _parsed(content, path)


def mentions_torch(root: Path) -> bool:
    """Whether any source of the implementation imports torch, read from its text; true if that is too long.

    So does one that imports no library of arrays and calls what only torch's tensors have.
    """
    if mentions(root, "torch"):
        return True
    uses = any(_OF_TENSORS.search(read_source(path) or b"") for path in sources(root))
    return uses and not any(mentions(root, other) for other in _OTHERS)


def mentions(root: Path, package: str) -> bool:
    """Whether any source of it imports a package, read from its text; true if that is too long."""
    read = parsed = 0
    for path in sources(root):
        content = read_source(path) or b""
        mentioned = package.encode() in content
        read, parsed = read + len(content), parsed + len(content) * mentioned
        if read > _MAX_READ or parsed > _MAX_PARSED:
            return True
        tree = _parsed(content, path) if mentioned else None
        if tree is not None and _imports(tree, package):
            return True
    return False


@lru_cache(maxsize=1)
def _parsed(content: bytes, path: Path) -> ast.Module | None:
    """Parse a source, and keep the tree of the last one: a module is asked about twice in a row when it is listed."""
    try:
        return syntax.module(content, str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _entries(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the folders and the sources in a folder, each sorted by name."""
    folders: list[Path] = []
    files: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(islice(entries, _MAX_FOLDERS), key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    folders += [Path(entry.path)] if _is_own(entry.name) else []
                elif _is_source(entry.name):
                    files.append(Path(entry.path))
    except OSError:
        pass
    return folders, files


def _stays(path: Path, root: Path) -> bool:
    """Whether a link leads to something below `root`."""
    try:
        return path.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):
        return False


def _is_own(folder: str) -> bool:
    return not folder.startswith((".", "__")) and folder not in {"tests", "test", "venv"}


def _is_source(name: str) -> bool:
    return name.endswith(".py") and name not in _ASIDE and not name.startswith("test_")


def _imports(tree: ast.Module, package: str) -> bool:
    for node in _statements(tree):
        if isinstance(node, ast.Import) and any(alias.name.split(".")[0] == package for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == package:
            return True
    return False


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all statements, nested ones too; an import is never part of an expression."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, None)
            waiting += inner if isinstance(inner, list) else []


def _of_file(path: Path) -> Location:
    if not path.name.endswith((*importlib.machinery.all_suffixes(), notebooks.SUFFIX)):
        archive = "; it is an archive: unpack it, and name what is in it" if path.suffix in _ARCHIVES else ""
        message = f"{path.name} is no Python file{archive}"
        raise FileNotFoundError(message)
    if path.name == "__init__.py":
        return _of_folder(path.parent)
    root, packages = _package_root(path.parent)
    return _reaching_up(Location("file", ".".join([*packages, path.stem]), path, (root,)), path.parent, len(packages))


def _of_folder(path: Path) -> Location:
    if not (path / "__init__.py").is_file():
        return _reaching_up(Location("folder", path.name, path, (path, path.parent)), path, 1)
    root, packages = _package_root(path)
    return _reaching_up(Location("folder", ".".join(packages), path, (root,)), path, len(packages))


def _reaching_up(found: Location, folder: Path, packages: int) -> Location:
    """Take folders around it as packages too, where its relative imports reach above those that have `__init__.py`.

    `folder` is the innermost of its `packages`, or holds the file.
    """
    assert found.path is not None
    lacking = reach(_with_content(found.path), folder) - packages
    around = [folder, *folder.parents][packages : packages + max(lacking, 0) + 1]
    names = [above.name for above in around[:-1]][::-1]
    if lacking <= 0 or len(names) < lacking or not all(name.isidentifier() for name in names):
        return found
    return replace(found, name=".".join([*names, found.name]), sys_path=(*found.sys_path, around[-1]))


def _with_roots(found: Location) -> Location:
    """Add the folders from which its absolute imports resolve; an installed library has its own."""
    if found.path is None or found.kind == "module" or "site-packages" in found.path.parts:
        return found
    return replace(found, sys_path=(*found.sys_path, *further_roots(_with_content(found.path), found.sys_path)))


def _with_content(root: Path) -> Iterator[tuple[Path, bytes]]:
    read = 0
    for path in sources(root):
        content = read_source(path) or b""
        read += len(content)
        if read > _MAX_READ:
            return
        yield path, content


def _package_root(folder: Path) -> tuple[Path, list[str]]:
    packages: list[str] = []
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        packages.insert(0, folder.name)
        folder = folder.parent
    return folder, packages


def _import_path() -> list[Path]:
    """Return the folders of the user's PYTHONPATH, which the command removed from its own path."""
    return [Path(entry) for entry in os.environ.get(IMPORT_PATH, "").split(os.pathsep) if entry]


def _of_module(name: str, folder: Path) -> Location:
    top, *rest = name.split(".")
    for entry in (folder, folder / "src", *_import_path(), *map(Path, sys.path)):
        for candidate in (entry.joinpath(top, *rest), entry.joinpath(top, *rest).with_suffix(".py")):
            if (candidate / "__init__.py").is_file() or candidate.is_file():
                return Location("module", name, candidate.resolve(), (entry.resolve(),))
    spec = importlib.util.find_spec(top)  # a top-level name: this imports nothing
    if spec is None:
        message = f"no module {name!r}, neither below {folder} nor installed{_nearest(folder / top)}"
        raise FileNotFoundError(message)
    origin = Path(spec.origin) if spec.origin and not rest else None
    path = origin.parent if origin is not None and origin.name == "__init__.py" else origin
    return Location("module", name, path)
