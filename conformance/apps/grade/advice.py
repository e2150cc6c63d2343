"""Uses of forbidden libraries in the source: names are followed through imports and assignments.

If the kit itself is forbidden, functions copied from its reference are found too (copies.py).

This is advice for a person. Deliberately hidden uses (`getattr`, `exec`, bytes) are not found, and a finding changes no
points.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from conformkit.conformance.apps.grade.copies import copied
from conformkit.conformance.apps.grade.declared import paths
from conformkit.conformance.apps.grade.record import Advice
from conformkit.conformance.binding.config import Config
from conformkit.conformance.driver.location import parse, sources

__all__ = ["WATCHING", "advise"]

WATCHING = (
    "sys._getframe", "sys._current_frames", "sys.settrace", "sys.setprofile", "inspect.stack",
    "inspect.currentframe", "traceback.extract_stack", "traceback.walk_stack", "gc.get_objects", "gc.get_referrers",
)  # fmt: skip
"""What code asks that wants to know who calls it: no verdict shows that it is right for the judge only."""

_MAX_WARNINGS = 50
_IMPORTERS = frozenset({"__import__", "importlib.import_module"})


def advise(root: Path, forbidden: Iterable[str], config: Config | None = None) -> list[Advice]:
    """Return where the sources below `root`, or its conform.toml, use forbidden names; at most 50 places."""
    names = tuple(forbidden)
    found: list[Advice] = []
    for path in sources(root) if names else ():
        tree = parse(path)
        if tree is not None:
            place = path.name if path == root else str(path.relative_to(root))
            found += [Advice(kind, what, f"{place}:{line}") for kind, what, line in _ModuleReader(tree, names).uses()]
    for path_name in paths(config) if config is not None else ():
        full = path_name.replace(":", ".")
        found += [Advice("call", name, "conform.toml") for name in names if _is_in(full, name)]
    found += [Advice("copy", what, where) for what, where in copied(root)] if "conformkit" in names else []
    return list(dict.fromkeys(found))[:_MAX_WARNINGS]


class _ModuleReader:
    """One module: the meaning of its names, wherever they are bound, and their uses."""

    def __init__(self, tree: ast.Module, forbidden: tuple[str, ...]) -> None:
        self._nodes = list(ast.walk(tree))
        self._forbidden = forbidden
        self._aliases = _imported(self._nodes)
        for _ in range(3):  # an alias of an alias, and one more
            self._aliases = {**_assigned(self._nodes, self._aliases), **self._aliases}

    def uses(self) -> Iterator[tuple[str, str, int]]:
        """Yield kind, forbidden name and line, in the order of lines."""
        found = {(line, kind, name) for node in self._nodes for kind, name, line in self._of(node)}
        for line, kind, name in sorted(found):
            yield kind, name, line

    def _of(self, node: ast.AST) -> Iterator[tuple[str, str, int]]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in _brought_in(node):
                yield from (("import", known, node.lineno) for known in self._forbidden if _is_in(name, known))
        elif isinstance(node, ast.Call):
            called = _dotted(node.func, self._aliases)
            if called in _IMPORTERS and (word := _text(node.args)):
                yield from (("import", known, node.lineno) for known in self._forbidden if _is_in(word, known))
            elif called is not None:
                yield from (("call", known, node.lineno) for known in self._forbidden if _is_in(called, known))
        elif isinstance(node, ast.ClassDef):
            for base in node.bases:  # a subclass uses its bases
                name = _dotted(base, self._aliases) or ""
                yield from (("call", known, node.lineno) for known in self._forbidden if _is_in(name, known))


def _text(arguments: Sequence[ast.expr]) -> str:
    """Return the first argument, if it is a string."""
    first = arguments[0] if arguments else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""


def _imported(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return the full names of names that imports bind: `n` for `torch.nn` after `from torch import nn as n`."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                found[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _assigned(nodes: Iterable[ast.AST], aliases: Mapping[str, str]) -> dict[str, str]:
    """Return the full names of plain names that are assigned an imported object: `A = nn.MultiheadAttention`."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Assign) and (name := _dotted(node.value, aliases)) is not None:
            found |= {target.id: name for target in node.targets if isinstance(target, ast.Name)}
    return found


def _brought_in(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [] if node.level or not node.module else [f"{node.module}.{alias.name}" for alias in node.names]


def _dotted(node: ast.expr, aliases: Mapping[str, str]) -> str | None:
    """Return the full name of `n.MultiheadAttention`, or None if it does not come from an import."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    head = aliases.get(node.id, node.id if node.id == "__import__" else "")
    return ".".join([head, *reversed(parts)]) if head else None


def _is_in(name: str, forbidden: str) -> bool:
    """Whether a full name is forbidden, or in a forbidden module."""
    return name == forbidden or name.startswith(forbidden + ".")
