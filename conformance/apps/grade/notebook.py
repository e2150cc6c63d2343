"""Notebooks as submissions: the definitions of a notebook as a Python file next to it, which is judged like any other.

Functions, classes and settings are kept, and the imports that they use: others are often of what only a notebook has,
such as `google.colab`, or of libraries for pictures. What a function or a class needs besides may fail where files or
data are missing, and is tried. Everything else, training and pictures above all, is left out, and the
notes say how much.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from conformkit.conformance.binding.messages import shown
from conformkit.conformance.driver import notebooks, syntax
from conformkit.conformance.text import count

__all__ = ["convert"]

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_GROUPS = (ast.If, ast.Try)
_MAX_NOTEBOOKS = 50
"""Maximum number of notebooks of a submission."""


def convert(root: Path) -> list[str]:
    """Write a Python file for each notebook below a folder; return notes on what was left out.

    A notebook next to a Python file of the same name is not read.
    """
    found = sorted(path for path in root.rglob(f"*{notebooks.SUFFIX}") if path.is_file())
    return [note for path in found[:_MAX_NOTEBOOKS] for note in _converted(path, root)]


def _converted(path: Path, root: Path) -> Iterator[str]:
    target, name = path.with_suffix(".py"), shown(path.relative_to(root))
    if target.exists():
        yield f"{name} was not read: there is a Python file of the same name"
        return
    cells = [(number, _parsed(code)) for number, code in notebooks.cells(path.read_bytes())]
    broken = [str(number) for number, tree in cells if tree is None]
    statements = [statement for _, tree in cells for statement in (tree or [])]
    try:
        kept = list(_kept(statements))
    except RecursionError:
        kept = []
    if not kept:
        yield f"{name} was not read: it is no notebook, or defines nothing"
        return
    target.write_text("\n\n".join(kept) + "\n", encoding="utf-8", errors="replace")
    yield f"{name}: its imports, definitions and settings are judged; {_left(len(statements) - len(kept), broken)}"


def _left(number: int, broken: Sequence[str]) -> str:
    cells = f"; not valid Python, so left out: cell {', '.join(broken)}" if broken else ""
    return f"left out, because it only runs or these do not use it: {count(number, 'statement')}{cells}"


def _parsed(code: str) -> list[ast.stmt] | None:
    """Return the statements of a cell; None if it is not Python."""
    try:
        return syntax.module(code.encode()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _kept(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the code of what is kept."""
    used = _read(each for each in statements if isinstance(each, _DEFINES))
    assigns = (ast.Assign, ast.AnnAssign)
    kept = [each for each in statements if _defines(each) or (isinstance(each, assigns) and used & _names(each))]
    used = _read(kept) | {"*"}
    of_language = [each for each in kept if isinstance(each, ast.ImportFrom) and each.module == "__future__"]
    yield from map(ast.unparse, of_language)  # these come first in a file, and in any cell
    for each in kept:
        if isinstance(each, ast.Import | ast.ImportFrom):
            each.names = [alias for alias in each.names if _bound(alias) in used]
            if each.names and each not in of_language:
                yield ast.unparse(each)
        elif _defines(each):
            yield ast.unparse(each)
        else:
            yield f"try:\n    {ast.unparse(each).replace(chr(10), chr(10) + '    ')}\nexcept Exception:\n    pass"


def _read(statements: Iterable[ast.stmt]) -> set[str]:
    """Return all names in the code of these."""
    return {node.id for each in statements for node in ast.walk(each) if isinstance(node, ast.Name)}


def _bound(alias: ast.alias) -> str:
    """Return the name that an import binds."""
    return alias.asname or alias.name.partition(".")[0]


def _defines(statement: ast.stmt) -> bool:
    """Whether a statement only defines: also an import or a setting in an `if` or a `try`."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return not any(isinstance(node, ast.Call | ast.Await) for node in ast.walk(statement))
    if isinstance(statement, _GROUPS):
        return all(_defines(each) or isinstance(each, ast.Pass) for each in _inside(statement))
    return isinstance(statement, _DEFINES)


def _inside(statement: ast.If | ast.Try) -> Iterable[ast.stmt]:
    if isinstance(statement, ast.If):
        return [*statement.body, *statement.orelse]
    handled = [each for handler in statement.handlers for each in handler.body]
    return [*statement.body, *handled, *statement.orelse, *statement.finalbody]


def _names(statement: ast.Assign | ast.AnnAssign) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return {node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)}
