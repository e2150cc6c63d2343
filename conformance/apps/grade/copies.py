"""Functions copied from the bundled reference: the same code except for names, strings and annotations.

This is advice for a person. A deliberately changed line hides a copy, and a finding changes no points.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from conformkit.conformance.diagnosis.patching import reference_folder
from conformkit.conformance.driver import syntax
from conformkit.conformance.driver.location import parse, sources

__all__ = ["copied", "fingerprints"]

_LEAST_NODES = 60
"""Minimum size: two people may write the same shorter function independently."""
_DEEPEST = 60
_SHORT, _MAX_DIGESTS = 16, 1000
"""Length of a stored digest, and how many are stored at most."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


def copied(root: Path) -> Iterator[tuple[str, str]]:
    """Yield each copy: its full name in the kit, and its place below `root`."""
    for path in sources(root):
        tree = parse(path)
        place = path.name if path == root else str(path.relative_to(root))
        for name, function in _functions(tree) if tree is not None else ():
            own = _reference().get(_fingerprint(function))
            if own is not None and name:
                yield own, f"{place}:{function.lineno}"


def fingerprints(root: Path) -> tuple[str, ...]:
    """Return a digest of each longer function below `root`, the same for equal code with other names."""
    trees = (parse(path) for path in sources(root))
    found = {_fingerprint(function) for tree in trees if tree is not None for _, function in _functions(tree)}
    return tuple(sorted(digest[:_SHORT] for digest in found if digest))[:_MAX_DIGESTS]


@cache
def _reference() -> dict[str, str]:
    """Return the full names of the reference's functions by digest of their code without names."""
    found: dict[str, str] = {}
    folder = reference_folder()
    for file in sorted(folder.rglob("*.py"), key=lambda file: (len(file.parts), file)):
        tree = syntax.module(file.read_text(encoding="utf-8"))
        stem = ".".join(("conformkit.reference", *file.relative_to(folder).with_suffix("").parts))
        found = {_fingerprint(function): f"{stem}.{name}" for name, function in _functions(tree)} | found
    found.pop("", None)
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[str, Function]]:
    """Yield the functions of a module and the methods of its classes, with their names in it."""
    for node in tree.body:
        if isinstance(node, Function):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{inner.name}", inner) for inner in node.body if isinstance(inner, Function))


def _fingerprint(function: Function) -> str:
    """Return a digest of a function's code; nothing for a short one, or one built to crash a parser."""
    words: list[str] = []
    names: dict[str, int] = {}
    for depth, node in _walked(function):
        if depth > _DEEPEST:
            return ""
        words.append(f"{depth} {type(node).__name__} {_word(node, names)}")
    if len(words) < _LEAST_NODES:
        return ""
    return hashlib.sha256("\n".join(words).encode(errors="surrogateescape")).hexdigest()


def _walked(function: Function) -> Iterator[tuple[int, ast.AST]]:
    """Yield the nodes of a function with their depth, in order of the text; no annotations, no docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    left: list[tuple[int, ast.AST]] = [(0, node) for node in reversed([function.args, *body])]
    while left:
        depth, node = left.pop()
        yield depth, node
        hidden = getattr(node, "annotation", None)
        inner = [child for child in ast.iter_child_nodes(node) if child is not hidden]
        left += [(depth + 1, child) for child in reversed(inner)]


def _word(node: ast.AST, names: dict[str, int]) -> str:
    """Return a node's content besides its kind; a name is the number of its first use, all strings are equal."""
    if isinstance(node, ast.Name | ast.arg):
        name = node.id if isinstance(node, ast.Name) else node.arg
        return str(names.setdefault(name, len(names)))
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    return ""


def _constant(value: object) -> str:
    """Return the text of a constant; Python refuses to print integers with thousands of digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return hex(value)[:100]
    return "" if isinstance(value, str) else repr(value)[:100]
