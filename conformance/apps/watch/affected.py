"""What a change of the sources can affect, read from their text: definitions, and which mentions which.

It only decides what is judged first: everything is judged in the end, so a missed effect only costs time.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

from conformkit.conformance.apps.watch.snapshot import Files
from conformkit.conformance.driver import syntax

__all__ = ["Change", "change"]

Node = tuple[Path, str]
"""A definition at the top level of a file; with the name "", everything else there."""


@dataclass(frozen=True, slots=True)
class _Bound:
    """A word that a file's imports bind; with `*`, everything in the file."""

    file: Path
    word: str


Mention = tuple[Node | _Bound, set[Node | _Bound]]
"""Nodes and those they depend on."""


@dataclass(frozen=True, slots=True)
class Change:
    """Which files differ, which definitions in them, and what mentions those, directly or not.

    `everything`: the effect is unknown, because a file is not valid Python, was added or removed, or is not a source.
    """

    files: tuple[Path, ...]
    definitions: tuple[str, ...] = ()
    direct: frozenset[Node] = frozenset()
    affected: frozenset[Node] = frozenset()
    everything: bool = False

    @property
    def silent(self) -> bool:
        """Whether no definition differs, only comments or blank lines."""
        return not self.everything and not self.direct

    def reaches(self, file: Path, line: int, files: Files, *, directly: bool = False) -> bool:
        """Whether it can affect what is defined there, or if that is unknown."""
        if self.everything or file not in files:
            return True
        tree = _parsed(files[file])
        name = next((n for n, node in _named(tree) if node.lineno <= line <= (node.end_lineno or line)), None)
        return name is None or (file, name) in (self.direct if directly else self.affected)


def change(before: Files, after: Files) -> Change:
    """Return what differs and what it can affect."""
    differing = tuple(path for path in {**before, **after} if before.get(path) != after.get(path))
    trees = [_parsed(files[path]) for path in differing for files in (before, after) if path in files]
    whole = any(path not in before or path not in after or path.suffix != ".py" for path in differing)
    if whole or any(tree is None for tree in trees):
        return Change(differing, everything=True)
    direct = frozenset((path, name) for path in differing for name in _differing(before[path], after[path]))
    names = tuple(dict.fromkeys(name for _, name in sorted(direct) if name))
    return Change(differing, names, direct, _dependents(direct, after))


def _differing(before: bytes, after: bytes) -> set[str]:
    one, other = _dumped(before), _dumped(after)
    return {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}


@lru_cache(maxsize=512)
def _parsed(content: bytes) -> ast.Module | None:
    try:
        return syntax.module(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _named(tree: ast.Module | None) -> Iterator[tuple[str, ast.stmt]]:
    """Yield each top-level statement with the name that it defines, "" if it defines none."""
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node
        else:
            yield "", node


@lru_cache(maxsize=512)
def _dumped(content: bytes) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, node in _named(_parsed(content)):
        found[name] = found.get(name, "") + _dump(node, content)
    return found


def _dump(node: ast.stmt, content: bytes) -> str:
    """Return the content of a statement; the whole file if it is too deep, or has a number too long to print."""
    try:
        return ast.dump(node)
    except (RecursionError, ValueError):
        return repr(content)


def _dependents(changed: Iterable[Node], files: Files) -> frozenset[Node]:
    """Return the changed nodes and all that mention them, directly or not, also through imports of other files."""
    mentioned_by: dict[Node | _Bound, set[Node | _Bound]] = {}
    for path, content in files.items():
        for node, mentioned in chain(_mentions(path, content), _imports(path, content, files)):
            for other in mentioned:
                mentioned_by.setdefault(other, set()).add(node)
    found: set[Node | _Bound] = set(changed)
    waiting = list(found)
    while waiting:
        new = mentioned_by.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return frozenset(node for node in found if not isinstance(node, _Bound))


def _mentions(path: Path, content: bytes) -> Iterator[Mention]:
    """Yield each node of a file with what it mentions; all mention the statements at the top level.

    Unused imports affect nothing.
    """
    words = _words(content)
    own = {name for name, _ in words}
    for name, mentioned in words:
        found: set[Node | _Bound] = {_Bound(path, word) for word in mentioned}
        found |= {(path, word) for word in mentioned if word in own and word != name}
        yield (path, name), found | ({(path, "")} if name else set())


@lru_cache(maxsize=512)
def _words(content: bytes) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return each top-level name and the words in its statement."""
    named = _named(_parsed(content))
    return tuple((name, frozenset(n.id for n in ast.walk(node) if isinstance(n, ast.Name))) for name, node in named)


def _imports(path: Path, content: bytes, files: Files) -> Iterator[Mention]:
    """Yield each word that an import binds with its possible meanings; a word for a whole file means all in it.

    A word imported from another file means one of that file's words: chains are not followed here.
    """
    whole: set[Node | _Bound] = {(path, ""), *((path, name) for name, _ in _words(content))}
    for node in _import_statements(content):
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                bound = _Bound(path, alias.asname or alias.name)
                yield bound, set(_targets(node, alias.name, path, files))
            else:
                bound = _Bound(path, alias.asname or alias.name.partition(".")[0])
                yield bound, {_Bound(file, "*") for file in _files_of(alias.name, path.parents, files)}
            whole.add(bound)
    yield _Bound(path, "*"), whole


@lru_cache(maxsize=512)
def _import_statements(content: bytes) -> tuple[ast.Import | ast.ImportFrom, ...]:
    tree = _parsed(content)
    return tuple(n for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom)) if tree else ()


def _targets(node: ast.ImportFrom, name: str, path: Path, files: Files) -> Iterator[Node | _Bound]:
    """Yield what a name imported from a module may be: defined there, imported there, or a module itself."""
    module = node.module or ""
    homes = path.parents[node.level - 1 : node.level] if node.level else path.parents
    for file in _files_of(module, homes, files):
        yield from ((file, name), _Bound(file, name))
    for file in _files_of(f"{module}.{name}".strip("."), homes, files):
        yield _Bound(file, "*")


def _files_of(module: str, homes: Iterable[Path], files: Files) -> Iterator[Path]:
    """Yield the files that may be this module, below one of these folders."""
    parts = module.split(".") if module else []
    for home in homes:
        base = home.joinpath(*parts)
        candidates = [base / "__init__.py", *([base.with_name(f"{base.name}.py")] if base.name else [])]
        yield from (candidate for candidate in candidates if candidate in files)
