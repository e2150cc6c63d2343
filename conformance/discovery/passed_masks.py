"""What an implementation's own code means by a mask that it passes: read off its sources.

Where it makes the mask of ids, or of numbers of words and of padding, it says itself whether 1 shows or hides.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from conformkit.conformance.driver.location import parse, sources

__all__ = ["shows_words"]

_COMPARED = {ast.NotEq: True, ast.Gt: True, ast.Eq: False}
_METHODS = {"ne": True, "gt": True, "eq": False}
"""Comparisons with the padding, by whether they are true for words."""


def shows_words(root: Path | None, argument: str) -> bool:
    """Whether what the code below a folder, or in a file, passes as an argument is 1 for words, and never for padding.

    False, too, where nothing says so.
    """
    trees = [] if root is None else [tree for tree in map(parse, sources(root)) if tree is not None]
    said = {found for tree in trees for found in _said(tree, argument)}
    return said == {True}


def _said(tree: ast.Module, argument: str) -> Iterator[bool]:
    """Yield, for each expression that says so, whether words are 1 in the mask."""
    given = [word.value for node in ast.walk(tree) if isinstance(node, ast.Call)
             for word in node.keywords if word.arg == argument]  # fmt: skip
    names = {argument, *(inner.id for node in given for inner in ast.walk(node) if isinstance(inner, ast.Name))}
    made = [inner for node in [*given, *_bound(tree, names)] for inner in ast.walk(node)]
    yield from (found for node in made if (found := _words_are_1(node)) is not None)
    if any(map(_is_mask_of_zeros, made)) or any(_turns(node, names) for node in ast.walk(tree)):
        yield False  # it may be passed the other way round


def _bound(tree: ast.Module, names: set[str]) -> Iterator[ast.expr]:
    """Yield what is assigned to these names, or appended to their lists."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id in names for t in node.targets):
            yield node.value
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {f"{name}.append" for name in names}:
            yield from node.args


def _turns(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is 1 where something of these names is 0: `~mask`, `1 - mask`, `logical_not(mask)`."""
    turned: list[ast.expr] = []
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        turned = [node.operand]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and isinstance(node.left, ast.Constant):
        turned = [node.right]
    elif isinstance(node, ast.Call) and "logical_not" in ast.unparse(node.func):
        turned = [node.func, *node.args]
    return any(isinstance(inner, ast.Name) and inner.id in names for part in turned for inner in ast.walk(part))


def _is_mask_of_zeros(node: ast.AST) -> bool:
    """Whether a mask is compared with 0: `mask == 0`."""
    return isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Eq) and "mask" in ast.unparse(node.left)


def _words_are_1(node: ast.AST) -> bool | None:
    """Whether an expression is 1 for words: `ids != pad`, `[1] * len(row) + [0] * padding`; None for another one."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _COMPARED.get(type(node.ops[0])) if _is_padding(node.left, node.comparators[0]) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        return _METHODS.get(node.func.attr) if _is_padding(node.func.value, node.args[0]) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [_repeated(node.left), _repeated(node.right)]
        filled = [bool(value) for value, times in filter(None, parts) if "pad" in times]
        return not filled[0] if len(filled) == 1 and None not in parts else None
    return None


def _is_padding(ids: ast.expr, other: ast.expr) -> bool:
    """Whether ids are compared with the padding: its name, or 0."""
    zero = isinstance(other, ast.Constant) and other.value == 0 and not isinstance(other.value, bool)
    return "mask" not in ast.unparse(ids).lower() and (zero or "pad" in ast.unparse(other).lower())


def _repeated(node: ast.expr) -> tuple[int, str] | None:
    """Return the number that a list repeats, and how often, in words: `[0] * pad`."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult) or not isinstance(node.left, ast.List):
        return None
    items = [item.value for item in node.left.elts if isinstance(item, ast.Constant) and isinstance(item.value, int)]
    return (items[0], ast.unparse(node.right).lower()) if len(items) == len(node.left.elts) == 1 else None
