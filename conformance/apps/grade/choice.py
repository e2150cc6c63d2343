"""Which module of a submission is the implementation: the one named by the policy, else one with contract names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from conformkit.conformance.apps.grade.unpack import Unreadable
from conformkit.conformance.binding.config import Config, load_config
from conformkit.conformance.binding.messages import shown
from conformkit.conformance.driver.foreign import inside
from conformkit.conformance.driver.location import parse, sources
from conformkit.conformance.driver.worker.loading import defined
from conformkit.conformance.text import listed
from conformkit.spec.components import components_of
from conformkit.spec.profiles import named_profile

__all__ = ["Choice", "choose"]

_FILES_NAMED = 5
_KINDS = ("folder", "file", "package")
"""If several hold the same names, the last one is used."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The judged implementation, its declarations, and notes for the reader about the choice."""

    path: Path
    config: Config
    notes: tuple[str, ...] = ()
    own_name: str = "."
    """Its name for its author: that of the package or module, or `.` for the folder itself."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    path: Path
    kind: str
    names: frozenset[str]

    def rank(self, root: Path) -> tuple[int, int, int]:
        depth = len(self.path.relative_to(root).parts)
        return len(self.names), _KINDS.index(self.kind), depth if self.kind == "folder" else -depth


def choose(root: Path, named: str = "", *, own_config: bool = True, profile: str = "core") -> Choice:
    """Return the implementation in an unpacked submission; `named` is what the policy calls it.

    Raises Unreadable if there is no Python or no module of the policy's name, ConfigError if its conform.toml can't be
    used.
    """
    files = list(sources(root))
    if not files:
        raise Unreadable("it contains no Python file")
    nothing = Config()
    chosen, notes, known = (_named(root, named, files), (), nothing) if named else _found(root, files, profile)
    config = _config(_folders(root, chosen), known) if own_config else nothing
    path, module = _with_neighbors(root, chosen)
    return Choice(path, replace(config, module=config.module or module), notes, _own_name(root, chosen))


def _own_name(root: Path, chosen: Path) -> str:
    """Return what names it on a command line, in the folder that contains it."""
    if chosen == root:
        return "."
    if chosen.with_suffix(".ipynb").is_file():
        return f"./{chosen.stem}.ipynb"
    if chosen.stem.isidentifier() and chosen.suffix in {"", ".py"}:
        return chosen.stem
    return f"./{chosen.name}"  # no name of an option, whatever it begins with


def _named(root: Path, named: str, files: list[Path]) -> Path:
    """Return the file or folder of that name, at the top level, or in the only folder there, or in its `src`."""
    wanted = named if "/" in named or named.endswith(".py") else named.replace(".", "/")
    heart = _heart(root)
    for base in (root, heart, heart / "src"):
        for path in (base / wanted, base / f"{wanted}.py"):
            if path.is_file() or path.is_dir():
                return path
    there = [str(path.relative_to(root)) for path in files]
    raise Unreadable(f"it has no {named}; it has {listed([shown(name) for name in there], _FILES_NAMED)}")


def _exports(profile: str) -> frozenset[str]:
    """Return the names under which the components of a profile are found."""
    further = named_profile(profile).further_names
    parts = components_of(profile).values()
    return frozenset(name for part in parts for name in (part.export, *(part.further if further else ())))


def _found(root: Path, files: list[Path], profile: str) -> tuple[Path, tuple[str, ...], Config]:
    """Return what is judged, notes about that, and what is declared where the search began."""
    heart = _heart(root)
    config = load_config([heart])
    declared = _declared(heart, config)
    if declared is not None:
        return declared, (), config
    candidates = sorted(_candidates(root, files, _exports(profile)), key=lambda c: str(c.path))
    best = max(candidates, key=lambda c: c.rank(root))
    if not best.names:
        return files[0] if len(files) == 1 else heart, (), config
    others = [c for c in candidates if c.kind != "folder" and c.names == best.names and c is not best]
    notes = [f"{shown(c.path.relative_to(root))} holds the same names and was not judged" for c in others]
    return best.path, tuple(notes), config


def _heart(root: Path) -> Path:
    """Descend while there is only one folder, as in most archives; not into a package."""
    while True:
        inside = [path for path in root.iterdir() if not path.name.startswith(".")]
        folders = [path for path in inside if path.is_dir()]
        if any(path.suffix in {".py", ".toml"} for path in inside) or len(folders) != 1:
            return root
        root = folders[0]


def _declared(folder: Path, config: Config) -> Path | None:
    """Return the module whose parts the conform.toml in a folder names, if it exists."""
    paths = [config.module, *(c.path for c in config.components.values() if c.path and ":" in c.path)]
    tops = {path.partition(":")[0].partition(".")[0] for path in paths if path}
    if (folder / "__init__.py").is_file() or len(tops) != 1:
        return folder if tops else None
    top = tops.pop()
    there = (folder / name for name in (top, f"{top}.py") if inside(folder, name, folder) is not None)
    return next(there, folder)


def _candidates(root: Path, files: Iterable[Path], exports: frozenset[str]) -> Iterator[_Candidate]:
    """Yield every package, every folder of loose files and every such file, with the contract's names in each."""
    names = {path: frozenset(defined(parse(path))) & exports for path in files}
    packages: dict[Path, frozenset[str]] = {}
    folders: dict[Path, frozenset[str]] = {}
    for path, found in names.items():
        top = _package(path, root)
        if top is None:
            yield _Candidate(path, "file", found)
        else:
            packages[top] = packages.get(top, frozenset()) | found
        for folder in (path.parent, *path.parent.parents):
            if folder.is_relative_to(root) and (top is None or not folder.is_relative_to(top)):
                folders[folder] = folders.get(folder, frozenset()) | found
    yield from (_Candidate(path, "package", found) for path, found in packages.items())
    yield from (_Candidate(path, "folder", found) for path, found in folders.items())


def _package(path: Path, root: Path) -> Path | None:
    """Return the topmost package of a file within the submission."""
    top, folder = None, path.parent
    while (folder / "__init__.py").is_file() and folder.is_relative_to(root):
        top, folder = folder, folder.parent
    return top


def _with_neighbors(root: Path, path: Path) -> tuple[Path, str | None]:
    """Return the folder of a module that may import its neighbors, and the module's name; else the module."""
    loose = path.is_dir() and not (path / "__init__.py").is_file()
    if path == root or loose or (path.parent / "__init__.py").is_file() or not path.stem.isidentifier():
        return path, None
    beside = (file for file in sources(path.parent) if not file.is_relative_to(path))
    return (path.parent, path.stem) if any(beside) else (path, None)


def _folders(root: Path, path: Path) -> list[Path]:
    """Return possible places of its conform.toml: next to it or above it, within the submission."""
    first = path if path.is_dir() else path.parent
    return [folder for folder in (first, *first.parents) if folder.is_relative_to(root)]


def _config(folders: list[Path], known: Config) -> Config:
    """Return the nearest configuration; `known` is the one in one of these folders, if its path says so."""
    home = known.path.parent if known.path is not None else None
    nearer = folders.index(home) if home in folders else len(folders)
    found = load_config(folders[:nearer])
    return known if found.path is None and nearer < len(folders) else found
