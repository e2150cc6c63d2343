"""Import an implementation in the worker, and find the names of the contract in it."""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import sys
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from conformkit.conformance.driver import notebooks
from conformkit.conformance.driver.location import mentions_torch, parse, read_source, sources
from conformkit.conformance.driver.worker.apart import keep_apart
from conformkit.conformance.driver.worker.definitions import (
    Trains,
    defined_by,
    only_runs,
    runs_stopped,
    training_stopped,
    trains_at,
)
from conformkit.conformance.driver.worker.frameworks.base import Framework, RequestError, UnsupportedError
from conformkit.conformance.driver.worker.stand_ins import OwnMetadata, StandIns, distribution_of

__all__ = ["LoadError", "LoadedImplementation", "defined", "framework_named", "load", "location_place"]

_STAND_IN = "implementation_"
_MISSING = object()
_MOST_NOTED = 4
_MOST_READ = 20
"""How many notes on what was left out are given, and how many files that a module takes its names from are read."""
_LIBRARIES = frozenset({"site-packages", "dist-packages"})


class LoadError(Exception):
    """The implementation cannot be imported, or a name in it cannot be found."""


class LoadedImplementation:
    """A loaded implementation: its module (None for a folder of loose files), and where its sources are."""

    def __init__(self, name: str, module: types.ModuleType | None, root: Path | None) -> None:
        self.name = name
        self.module = module
        self.root = root
        self._files: list[tuple[str, Path]] | None = None
        self._bound: dict[Path, frozenset[str]] = {}
        self.notes: list[str] = []
        """What readers of a report must know about how it was loaded."""

    @property
    def file(self) -> str:
        """The file of the module, or the folder."""
        return str(getattr(self.module, "__file__", None) or self.root or "")

    def place(self, file: str) -> str | None:
        """Return the name to show for a file of the implementation, None for any other file."""
        return _place(file, self.root, loose=self.module is None)

    def resolve(self, path: str) -> Any:
        """Look up `module:attribute`; a bare name is an attribute of the loaded module. Attributes may be dotted."""
        module_name, _, attribute = path.rpartition(":")
        if not module_name:
            path = self.find(attribute) or f"{self.name}:{attribute}"
            module_name = path.rpartition(":")[0]
        value: Any = self._module(module_name)
        for part in attribute.split("."):
            holder, value = value, getattr(value, part, _MISSING)
            if value is _MISSING:
                message = f"{module_name} has no {attribute}{_nearest(part, holder)}"
                raise LoadError(message)
        return value

    def find(self, name: str, first: str | None = None) -> str | None:
        """Search for a name of the contract: in the module, else in the submodules whose source defines it.

        `first` is the module to look in before all others.
        Raises what the import of a submodule raises, when no other one has the name.
        """
        if first is not None and self._is_own(getattr(importlib.import_module(first), name, None)):
            return f"{first}:{name}"
        if self.module is not None and self._is_own(getattr(self.module, name, None)):
            return f"{self.module.__name__}:{name}"
        problem: BaseException | None = None
        for module_name in self._definers(name):
            try:
                module = importlib.import_module(module_name)
            except MemoryError:
                raise
            except (Exception, SystemExit) as error:  # noqa: BLE001
                problem = problem or error
                continue
            if self._is_own(getattr(module, name, None)):
                return f"{module_name}:{name}"
        if problem is not None:
            raise problem
        return None

    def _is_own(self, value: object) -> bool:
        """Whether it may be one of its components: no class that it imports from a library, which has a file."""
        if not isinstance(value, type):
            return _is_export(value)
        top = value.__module__.partition(".")[0]
        if top in {self.name.partition(".")[0], "__main__"}:
            return True
        file = getattr(sys.modules.get(value.__module__), "__file__", None)
        return file is None or not _LIBRARIES.intersection(Path(file).parts)

    def _module(self, name: str) -> types.ModuleType:
        if self.module is not None and name in {self.name, self.module.__name__}:
            return self.module
        return importlib.import_module(name)

    def _definers(self, name: str) -> list[str]:
        """Return the submodules that bind a name, read off their sources: only what mentions it is parsed, and once."""
        if self._files is None:
            self._files = list(self.submodules())
        return [module_name for module_name, path in self._files if self._binds(path, name)]

    def _binds(self, path: Path, name: str) -> bool:
        if path not in self._bound:
            if name.encode() not in (read_source(path) or b""):
                return False
            self._bound[path] = frozenset(defined(parse(path)))
        return name in self._bound[path]

    def submodules(self) -> Iterator[tuple[str, Path]]:
        """Yield the names and files of the modules in its folder."""
        if self.root is None or not self.root.is_dir():
            return
        prefix = [] if self.module is None else [self.module.__name__]
        for path in sources(self.root):
            parts = list(path.relative_to(self.root).with_suffix("").parts)
            if parts[-1] == "__init__":
                parts.pop()
            if all(part.isidentifier() for part in parts) and (prefix or parts):
                yield ".".join([*prefix, *parts]), path


def load(location: dict[str, Any]) -> LoadedImplementation:
    """Import what a location names. Raises what the import raises.

    A submission is imported as it is. In other code, modules that are not installed and that only scripts need are
    stood in for, and of a file that trains or reads files when it is imported only the definitions are taken; its
    notes say so.
    """
    path = Path(location["path"]) if location.get("path") else None
    for entry in reversed(location.get("sys_path") or []):
        if entry not in sys.path:
            sys.path.insert(0, entry)
    if location.get("apart"):
        keep_apart()
        return _loaded(location, path)
    _import_torch_first(path)
    stand_ins, before = StandIns(), set(sys.modules)
    sys.meta_path += [OwnMetadata(map(Path, _with_folders_above(location))), stand_ins]
    while True:
        try:
            with training_stopped():
                loaded = _loaded(location, path)
        except ModuleNotFoundError as error:
            if not stand_ins.takes(error.name):
                raise
            _forget({name for name in set(sys.modules) - before if _is_below(sys.modules[name], location)})
        else:
            loaded.notes += [
                f"{name} is not installed: judged without it, as if it did nothing; if a component needs it, "
                f"pip install {distribution_of(name)}"
                for name in stand_ins.names
            ]
            return loaded


def _import_torch_first(path: Path | None) -> None:
    """Import torch before the code does, which mentions it: else nobody could see it train."""
    if path is not None and "torch" not in sys.modules and mentions_torch(path):
        with contextlib.suppress(ImportError, OSError):
            importlib.import_module("torch")


def _forget(modules: Collection[str]) -> None:
    for name in modules:
        del sys.modules[name]


def _with_folders_above(location: Mapping[str, Any]) -> list[str]:
    places = list(location.get("sys_path") or [])
    return [*places, *(str(Path(place).parent) for place in places)]


def _is_below(module: types.ModuleType, location: Mapping[str, Any]) -> bool:
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), None)
    return file is not None and any(Path(file).is_relative_to(place) for place in location.get("sys_path") or [])


def _loaded(location: Mapping[str, Any], path: Path | None) -> LoadedImplementation:
    name, kind = str(location["name"]), location["kind"]
    if kind == "folder" and path is not None and not (path / "__init__.py").is_file():
        return _load_loose(name, path)
    if kind == "file" and path is not None and "." not in location["name"].removesuffix(path.stem):
        return _load_file(name, path, whole=bool(location.get("apart")))
    module = importlib.import_module(name)
    _check_is(module, path)
    return LoadedImplementation(name, module, path if path is not None else _root_of(module))


def location_place(location: dict[str, Any] | None) -> Callable[[str], str | None]:
    """Return what gives the names to show for files, while a location is not loaded yet."""
    root = Path(location["path"]) if location and location.get("path") else None
    loose = root is not None and root.is_dir() and not (root / "__init__.py").is_file()
    return lambda file: _place(file, root, loose=loose)


def framework_named(name: str | None, implementation: LoadedImplementation, device: str = "cpu") -> Framework:
    """Return the framework asked for, else the one that the implementation shows it uses."""
    if name is None:
        name = "torch" if _uses_torch(implementation) else "numpy"
    if name == "torch":
        if device == "ghost":
            from conformkit.conformance.driver.worker.frameworks.torch_ghost import TorchOnGhost  # noqa: PLC0415

            return TorchOnGhost()
        from conformkit.conformance.driver.worker.frameworks.torch import Torch  # noqa: PLC0415

        return Torch(device)
    if name == "numpy":
        from conformkit.conformance.driver.worker.frameworks.numpy import Numpy  # noqa: PLC0415

        if device != "cpu":
            message = f"not run: needs {device}, and NumPy computes on the cpu"
            raise UnsupportedError(message)
        return Numpy()
    message = f"there is no framework {name!r}, only torch and numpy"
    raise RequestError(message)


@functools.lru_cache(maxsize=1024)
def _place(file: str, root: Path | None, *, loose: bool) -> str | None:
    if root is None:
        return None
    path = Path(file)
    scope = root if root.is_dir() or "site-packages" in root.parts else root.parent
    if not path.is_relative_to(scope) or "site-packages" in path.relative_to(scope).parts:
        return None
    return str(path.relative_to(root if loose and root.is_dir() else root.parent))


def _load_file(name: str, path: Path, *, whole: bool) -> LoadedImplementation:
    """Import one file under its own name, or under another one where that is taken or no name.

    A notebook, and a file that trains or fails in a statement that defines nothing, gives its definitions; `whole`
    takes nothing but what imports as it is.
    """
    if not name.isidentifier() or name in sys.modules or name in sys.stdlib_module_names:
        name = _STAND_IN + "".join(c if c.isalnum() else "_" for c in name)
    if path.suffix == notebooks.SUFFIX and not whole:
        return _definitions(name, path, "")
    if not whole and (line := trains_at(path)):
        return _definitions(name, path, f"{line} trains when it is imported")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        message = f"{path.name} is no Python file"
        raise LoadError(message)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with contextlib.nullcontext() if whole else runs_stopped(path):
            spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(name, None)
        line = "" if whole or isinstance(error, ImportError) else only_runs(error, path)
        if not line:
            raise
        return _definitions(name, path, f"{line} {_raised(error)}", error)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return LoadedImplementation(name, module, path)


def _raised(error: Exception) -> str:
    return str(error) if isinstance(error, Trains) else f"raises {type(error).__name__}: {str(error)[:200]}"


def _definitions(name: str, path: Path, why: str, error: Exception | None = None) -> LoadedImplementation:
    """Return a module with what a file or a notebook defines; raise `error` where that is nothing."""
    module = types.ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    try:
        raised = defined_by(module, path)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    if not any(getattr(value, "__module__", "") == name for value in vars(module).values()):
        sys.modules.pop(name, None)
        raise error or LoadError(f"{path.name} defines no class and no function")
    loaded = LoadedImplementation(name, module, path)
    begin = f"{why}; its" if why else "the notebook's"
    loaded.notes = [f"{begin} imports, definitions and settings are judged, and what runs besides them was not run"]
    others = [problem for problem in raised if not why.startswith(problem.partition(" ")[0] + " ")]
    loaded.notes += [f"left out: {problem}" for problem in others[:_MOST_NOTED]]
    return loaded


def _load_loose(name: str, path: Path) -> LoadedImplementation:
    """Take a folder without `__init__.py`: loose files that import each other, or a package without a head.

    It is such a package when a file in it imports relatively.
    """
    is_name = all(part.isidentifier() for part in name.split("."))
    if is_name and name not in sys.modules and any(map(_imports_relatively, sources(path))):
        return LoadedImplementation(name, importlib.import_module(name), path)
    return LoadedImplementation(name, None, path)


def _check_is(module: types.ModuleType, path: Path | None) -> None:
    """Raise where another module has the name: one from another file, or folders that have none but share the name."""
    if path is None:
        return
    wanted, file = path.resolve(), getattr(module, "__file__", None)
    folders = [Path(place) for place in getattr(module, "__path__", [])]
    if file is not None and Path(file).resolve().is_relative_to(wanted):
        return
    if file is None and (not folders or wanted in [folder.resolve() for folder in folders]):
        return
    message = f"importing {module.__name__} gives {file or folders[0]}, not {path}: another module has this name"
    raise LoadError(message)


def _root_of(module: types.ModuleType) -> Path | None:
    folders = list(getattr(module, "__path__", []))
    file = getattr(module, "__file__", None)
    return Path(folders[0]) if folders else Path(file) if file else None


def _uses_torch(implementation: LoadedImplementation) -> bool:
    """Whether a loaded module of the implementation has torch in its namespace; else whether a source imports it."""
    root = implementation.root
    torch = sys.modules.get("torch")
    if torch is not None and implementation.module is not None:
        values = list(vars(implementation.module).values())
        if any(value is torch or _comes_from_torch(value) for value in values):
            return True
        files = {getattr(sys.modules.get(getattr(value, "__module__", "")), "__file__", None) for value in values}
        own = [Path(file) for file in files if file is not None and not _LIBRARIES.intersection(Path(file).parts)]
        if any(file.suffix == ".py" and mentions_torch(file) for file in own[:_MOST_READ]):
            return True
    return root is not None and mentions_torch(root)


def _comes_from_torch(value: object) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.split(".", 1)[0] == "torch"
    bases = value.__mro__ if isinstance(value, type) else ()
    return any(base.__module__.split(".", 1)[0] == "torch" for base in bases)


def _nearest(name: str, holder: Any) -> str:
    """Return a question after the name most like this one in a module or a class; nothing if none is."""
    import difflib  # noqa: PLC0415 - only a wrong path needs it

    near = difflib.get_close_matches(name[:100], [str(own)[:100] for own in getattr(holder, "__dict__", ())], n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _is_export(value: object) -> bool:
    return value is not None and not isinstance(value, types.ModuleType)


def defined(tree: ast.Module | None) -> Iterator[str]:
    """Yield the names that a module binds at its top level, inside `if` and `try` too."""
    pending: list[ast.stmt] = list(tree.body) if tree is not None else []
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            yield node.target.id
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.asname for alias in node.names if alias.asname is not None)
        elif isinstance(node, ast.If):
            pending += [*node.body, *node.orelse]
        elif isinstance(node, ast.Try):
            pending += [*node.body, *node.orelse, *(statement for h in node.handlers for statement in h.body)]


def _imports_relatively(path: Path) -> bool:
    tree = parse(path)
    return tree is not None and any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(tree))
