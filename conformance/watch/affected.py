"""What a change of the sources can affect, read off their text: definitions, and who mentions whom.

It decides what is judged first, no more: everything is judged in the end, so what this can't see costs time only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from conformkit.conformance.watch.snapshot import Files

__all__ = ["Change", "change"]

Node = tuple[Path, str]
"""A definition at the top of a file; with the name "", whatever else stands there."""


@dataclass(frozen=True, slots=True)
class Change:
    """Which files differ, which definitions in them, and what mentions those, directly or not.

    `everything`: nobody can tell, because a file is no Python, came, went, or is no source.
    """

    files: tuple[Path, ...]
    definitions: tuple[str, ...] = ()
    direct: frozenset[Node] = frozenset()
    affected: frozenset[Node] = frozenset()
    everything: bool = False

    @property
    def silent(self) -> bool:
        """Whether no definition differs: comments, blank lines."""
        return not self.everything and not self.direct

    def reaches(self, file: Path, line: int, files: Files, *, directly: bool = False) -> bool:
        """Whether it can affect what is defined there; also where that can't be told."""
        if self.everything or file not in files:
            return True
        tree = _parsed(files[file])
        name = next((n for n, node in _named(tree) if node.lineno <= line <= (node.end_lineno or line)), None)
        return name is None or (file, name) in (self.direct if directly else self.affected)


def change(before: Files, after: Files) -> Change:
    """Return what differs and what that can affect."""
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
        return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _named(tree: ast.Module | None) -> Iterator[tuple[str, ast.stmt]]:
    """Yield each statement at the top with the name that it defines, "" where it defines none of its own."""
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
    """Return what a statement says; of one that is too deep, or has a number too long to be written, its whole file."""
    try:
        return ast.dump(node)
    except (RecursionError, ValueError):
        return repr(content)


def _dependents(changed: Iterable[Node], files: Files) -> frozenset[Node]:
    """Return the changed nodes and all that mention them, directly or not."""
    mentioned_by: dict[Node, set[Node]] = {}
    for path, content in files.items():
        for node, mentioned in _mentions(path, content, files):
            for other in mentioned:
                mentioned_by.setdefault(other, set()).add(node)
    found, waiting = set(changed), list(changed)
    while waiting:
        for dependent in mentioned_by.get(waiting.pop(), ()):
            if dependent not in found:
                found.add(dependent)
                waiting.append(dependent)
    return frozenset(found)


def _mentions(path: Path, content: bytes, files: Files) -> Iterator[tuple[Node, set[Node]]]:
    """Yield each node of a file with the nodes that it mentions; all mention what stands at the top.

    What is imported and not mentioned affects nothing.
    """
    tree = _parsed(content)
    own = [name for name, _ in _named(tree)]
    imported = _imported(path, files)
    for name, statement in _named(tree):
        words = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        found: set[Node] = {(path, word) for word in words if word in own and word != name}
        for word in words:
            found |= imported.get(word, set())
        yield (path, name), found | ({(path, "")} if name else set())


def _imported(path: Path, files: Files, seen: frozenset[Path] = frozenset()) -> dict[str, set[Node]]:
    """Return, by the name that an import binds, the nodes of other files that it stands for, also through others."""
    found: dict[str, set[Node]] = {}
    tree = _parsed(files[path])
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = set(_targets(node, alias.name, path, files, seen | {path}))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                word = alias.asname or alias.name.partition(".")[0]
                found[word] = {n for file in _files_of(alias.name, path, files) for n in _all_of(file, files)}
    return found


def _targets(node: ast.ImportFrom, name: str, path: Path, files: Files, seen: frozenset[Path]) -> Iterator[Node]:
    module = node.module or ""
    homes = [path.parents[node.level - 1]] if node.level else []
    for file in _files_of(module, path, files, homes):
        names = dict(_named(_parsed(files[file])))
        if name in names:
            yield file, name
        yield from _imported(file, files, seen).get(name, ()) if file not in seen else ()
    for file in _files_of(".".join(filter(None, (module, name))), path, files, homes):
        yield from _all_of(file, files)


def _files_of(module: str, path: Path, files: Files, homes: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield the files that may be this module: below the given folders, else below any folder above the importer."""
    parts = module.split(".") if module else []
    for home in homes or path.parents:
        base = home.joinpath(*parts)
        for candidate in (base.with_name(base.name + ".py"), base / "__init__.py"):
            if candidate in files:
                yield candidate


def _all_of(file: Path, files: Files) -> Iterator[Node]:
    yield from ((file, name) for name, _ in _named(_parsed(files[file])))
    yield file, ""
