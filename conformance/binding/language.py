"""The expression language of `conform.toml`: which texts are valid.

The texts are untrusted: they are parsed with `ast` and checked against a whitelist. Nothing is
ever compiled or executed, and no value may exceed the bounds below.

    ExpressionError    an expression is invalid, or has no value; names its text, the problem and the nearest words
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from conformkit.conformance.binding.messages import hint, nearest, shown
from conformkit.conformance.driver import syntax

__all__ = [
    "ARITHMETIC", "COMPARISONS", "FUNCTIONS", "MAX_INTEGER", "MAX_ITEMS", "ExpressionError", "Problem", "bounded",
    "label", "names", "parse",
]  # fmt: skip

MAX_TEXT = 1000
MAX_NODES = 200
MAX_DEPTH = 32
MAX_INTEGER = 2**63
MAX_ITEMS = 1000
"""Characters of a string, leaves of a list."""

ARITHMETIC: Mapping[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
}
COMPARISONS: Mapping[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
    ast.Is: ("is", operator.is_),
    ast.IsNot: ("is not", operator.is_not),
    ast.In: ("in", lambda a, b: a in b),
    ast.NotIn: ("not in", lambda a, b: a not in b),
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "abs": abs, "float": float, "int": int, "max": max, "min": min, "round": round, "sqrt": math.sqrt,
}  # fmt: skip
_NODES = (
    ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.UAdd, ast.USub, ast.Not, ast.BinOp, ast.BoolOp, ast.And, ast.Or,
    ast.Compare, ast.IfExp, ast.Call, ast.Tuple, ast.List, ast.Subscript, *ARITHMETIC, *COMPARISONS,
)  # fmt: skip


class ExpressionError(ValueError):
    """An expression that is invalid, or has no value here."""

    def __init__(self, expression: str, problem: str, nearest: tuple[str, ...] = ()) -> None:
        advice = f"; {hint(nearest)}" if nearest else ""
        super().__init__(f"expression {shown(expression)}: {problem}{advice}")
        self.expression, self.problem, self.nearest = expression, problem, nearest


class Problem(Exception):
    """What is wrong, before the expression's text is known."""

    def __init__(self, problem: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.problem, self.nearest = problem, nearest


@lru_cache(maxsize=1024)
def names(expression: str) -> frozenset[str]:
    """Return the names of the values that an expression uses; raise ExpressionError if it is invalid."""
    tree = parse(expression)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


@lru_cache(maxsize=1024)
def parse(expression: str) -> ast.expr:
    """Return the tree of an expression; raise ExpressionError if it is invalid."""
    if len(expression) > MAX_TEXT:
        raise ExpressionError(expression, f"it has {len(expression)} characters, expected at most {MAX_TEXT}")
    try:
        tree = syntax.expression(expression.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        problem = "it is not an expression (a string needs inner quotes: \"'gelu'\")"
        raise ExpressionError(expression, problem) from None
    try:
        _check(tree)
    except Problem as error:
        raise ExpressionError(expression, error.problem, error.nearest) from None
    return tree


def _check(tree: ast.expr) -> None:
    """Refuse whatever is not in the language, level by level: recursion could overflow the stack."""
    level: list[ast.AST] = [tree]
    count = 0
    for _ in range(2 * MAX_DEPTH):
        count += len(level)
        if count > 4 * MAX_NODES:
            break
        for node in level:
            _check_node(node)
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise Problem("it is too long or too deeply nested")


def _check_node(node: ast.AST) -> None:
    if not isinstance(node, _NODES):
        raise Problem(f"{label(node)} is not part of the language")
    if isinstance(node, ast.Constant):
        if not (node.value is None or isinstance(node.value, (bool, int, float, str))):
            raise Problem(f"{shown(node.value)} is not a number or string")
        bounded(node.value)
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS:
            called = ast.unparse(node.func)
            raise Problem(f"there is no function {shown(called)}", nearest(called, FUNCTIONS) or tuple(FUNCTIONS))
        if node.keywords:
            raise Problem(f"{node.func.id} takes no named arguments here")


def label(node: ast.AST) -> str:
    """Return the name of a Python construct in messages."""
    words = {ast.Attribute: "a dotted name", ast.Slice: "a slice", ast.keyword: "a named argument"}
    return words.get(type(node), f"{type(node).__name__}")


def bounded(value: Any) -> Any:
    """Return a value; raise Problem if it exceeds the bounds."""
    if isinstance(value, complex):
        raise Problem("the result is not a real number")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise Problem("a number is larger than 2 ** 63")
    if isinstance(value, float) and not math.isfinite(value):
        raise Problem("a number is not finite")
    if isinstance(value, (str, tuple)) and _leaves(value) > MAX_ITEMS:
        raise Problem(f"a {'string' if isinstance(value, str) else 'list'} is longer than {MAX_ITEMS}")
    return value


def _leaves(value: Any) -> int:
    if isinstance(value, tuple):
        return 1 + sum(_leaves(v) for v in value)
    return len(value) if isinstance(value, str) else 1
