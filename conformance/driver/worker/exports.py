"""Describe what an implementation exports: constructors, calls and methods, read from their signatures."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from conformkit.conformance.driver.location import parse
from conformkit.conformance.driver.worker.inside import inside
from conformkit.conformance.driver.worker.own_calls import join_halves, of_library, own
from conformkit.conformance.driver.worker.stubs import stubs

__all__ = ["defines", "describe", "kind_of", "signature"]

_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "positional",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "var_positional",
    inspect.Parameter.VAR_KEYWORD: "var_keyword",
}
_BOOLEAN = re.compile(r"\bbool|\b1s?\b.*\b0s?\b|\b0s?\b.*\b1s?\b", re.IGNORECASE)
_NUMBERS = re.compile(r"float|add|bias|real|-inf", re.IGNORECASE)
"""What is said of a mask that also takes numbers."""
_MOST_SAID = 5000


def describe(value: Any, path: str, place: Callable[[str], str | None]) -> dict[str, Any]:
    """Return kind, arguments of constructor and call, methods, stubs, and source line of an export.

    `memory`: it has no call of its own, and gets one that encodes and hands this argument of `decode` what it returns.
    """
    kind = kind_of(value)
    memory = join_halves(_class_of(value)) if kind != "function" else ""
    return {
        "found": True,
        "path": path,
        "kind": kind,
        "construct": signature(value) if kind == "class" else None,
        "call": _call(value, kind),
        "boolean": _boolean_masks(value, kind),
        "memory": memory,
        "methods": _methods(value) if kind != "function" else {},
        "stubs": stubs(_bodies(value, kind), place),
        "inside": inside(_bodies(value, kind)),
        "source": source(value, place),
        "error": None,
    }


def _class_of(value: Any) -> type:
    return value if isinstance(value, type) else type(value)


def kind_of(value: Any) -> str:
    """Distinguish classes and functions from other objects, which are components that already exist."""
    if isinstance(value, type):
        return "class"
    return "function" if inspect.isroutine(value) or type(value).__name__ == "partial" else "object"


def signature(value: Any, *, bound: bool = True) -> list[dict[str, Any]] | None:
    """Return the parameters of a callable, None if they are unknown. Unbound functions lose their first one."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (ValueError, TypeError):
        return None
    return [_parameter(parameter) for parameter in (parameters if bound else parameters[1:])]


def source(value: Any, place: Callable[[str], str | None]) -> str:
    """Return where something is defined, `mypkg/attention.py:12`, or nothing."""
    value = value if isinstance(value, type) or inspect.isroutine(value) else type(value)
    try:
        file = inspect.getsourcefile(value) or ""
        line = _lines_of_classes(file).get(value.__qualname__) if isinstance(value, type) else None
        line = line or inspect.findsource(inspect.unwrap(value))[1] + 1  # the first; finding the last takes longer
    except (OSError, TypeError, IndentationError, SyntaxError):
        return ""
    return f"{place(file) or file}:{line}"


_WITH_STATEMENTS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""What may hold a class: expressions, most of a tree, don't."""


@cache
def _lines_of_classes(file: str) -> dict[str, int]:
    """Return the first lines of the classes in a file by qualified names, read once: `inspect` reads it for each."""
    found: dict[str, int] = {}
    waiting: list[tuple[ast.AST, str]] = [(tree, "")] if (tree := parse(Path(file))) is not None else []
    while waiting:
        node, above = waiting.pop()
        for child in ast.iter_child_nodes(node):
            inner = above
            if isinstance(child, ast.ClassDef):
                places: list[ast.expr | ast.stmt] = [child, *child.decorator_list]
                found.setdefault(above + child.name, min(map(_line, places)))
                inner = f"{above}{child.name}."
            elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = f"{above}{child.name}.<locals>."
            if isinstance(child, _WITH_STATEMENTS):
                waiting.append((child, inner))
    return found


def _line(node: ast.expr | ast.stmt) -> int:
    return node.lineno


def _parameter(parameter: inspect.Parameter) -> dict[str, Any]:
    required = parameter.default is inspect.Parameter.empty
    variadic = parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
    return {
        "name": parameter.name,
        "kind": _KINDS[parameter.kind],
        "positional_only": parameter.kind is inspect.Parameter.POSITIONAL_ONLY,
        "required": required and not variadic,
        "default": None if required else _short_repr(parameter.default),
    }


def _short_repr(value: Any) -> str:
    try:
        return repr(value)[:200]
    except Exception:  # noqa: BLE001
        return f"<{type(value).__name__}>"


def _call(value: Any, kind: str) -> list[dict[str, Any]] | None:
    if kind == "function":
        return signature(value)
    owner = value if kind == "class" else type(value)
    for name in ("forward", "__call__"):
        found = own(owner, name)
        if found is not None:
            return signature(found, bound=isinstance(found, staticmethod))
    return None


def _boolean_masks(value: Any, kind: str) -> list[str]:
    """Return the arguments of its call that an annotation, or a line of a docstring, calls Boolean and nothing else."""
    owner = value if kind == "class" else type(value)
    called = value if kind == "function" else next(filter(None, (own(owner, n) for n in ("forward", "__call__"))), None)
    found = inspect.getdoc(called) if called is not None else None
    lines = [line for line in (found or "")[:_MOST_SAID].splitlines() if re.search("mask", line, re.IGNORECASE)]
    names = [p["name"] for p in _call(value, kind) or () if "mask" in p["name"].lower()]
    said = {n: str(note) for n, note in getattr(called, "__annotations__", {}).items()}
    lines_of = {n: [line for line in lines if re.search(rf"\b{re.escape(n)}\b", line)] or lines for n in names}
    return [n for n in names if _is_boolean(said.get(n, "")) or _is_boolean(" ".join(lines_of[n]))]


def _is_boolean(text: str) -> bool:
    return bool(_BOOLEAN.search(text)) and not _NUMBERS.search(text)


def _bodies(value: Any, kind: str) -> dict[str, Any]:
    """Return what may be a stub, by name: the constructor, public methods, and the call itself as ''."""
    if kind == "function":
        return {"": value}
    owner = value if kind == "class" else type(value)
    public = {name: own(owner, name) for name in _methods(value)}
    called = next(filter(None, (own(owner, name) for name in ("forward", "__call__"))), None)
    return {**public, "__init__": own(owner, "__init__"), "": called}


def defines(value: Any, name: str) -> bool:
    """Whether an object has a method that its author wrote, not one of a container or a tensor that it is."""
    if name in getattr(value, "__dict__", ()):
        return True
    owner = next((base for base in type(value).__mro__ if name in vars(base)), None)
    return hasattr(value, name) if owner is None else not of_library(owner)


def _methods(value: Any) -> dict[str, Any]:
    owner = value if isinstance(value, type) else type(value)
    found: dict[str, Any] = {}
    for base in owner.__mro__:
        if of_library(base) and base is not owner:
            continue
        for name, item in vars(base).items():
            if not name.startswith("_") and name not in found and len(found) < 100:
                _add_method(found, name, item)
    return found


def _add_method(found: dict[str, Any], name: str, item: Any) -> None:
    if isinstance(item, staticmethod):
        found[name] = signature(item.__func__)
    elif isinstance(item, classmethod):
        found[name] = signature(item.__func__, bound=False)
    elif inspect.isroutine(item):
        found[name] = signature(item, bound=False)
