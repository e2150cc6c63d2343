"""A small arithmetic language over named values, for `conform.toml`.

The texts come from files that nobody has read: they are parsed with `ast`, checked against a whitelist, and walked
here. Nothing is ever compiled or executed, and no value may grow beyond the bounds below.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

__all__ = ["Affine", "ExpressionError", "affine", "evaluate", "names", "nearest", "shown"]

MAX_TEXT = 1000
MAX_NODES = 200
MAX_DEPTH = 32
MAX_INTEGER = 2**63
MAX_ITEMS = 1000
"""Characters of a string, leaves of a list."""


class ExpressionError(ValueError):
    """An expression that cannot be read, or has no value here."""

    def __init__(self, expression: str, problem: str, nearest: tuple[str, ...] = ()) -> None:
        hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
        super().__init__(f"expression {shown(expression)}: {problem}{hint}")
        self.expression, self.problem, self.nearest = expression, problem, nearest


class _ProblemError(Exception):
    """What is wrong, before the expression's text is known."""

    def __init__(self, problem: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.problem, self.nearest = problem, nearest


def shown(text: object, limit: int = 80) -> str:
    """Return a text from outside in quotes, without control characters and of bounded length."""
    plain = str(text)
    cut = plain if len(plain) <= limit else plain[: limit - 1] + "…"
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut) + '"'


def nearest(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Return the known words that a misspelt one most likely means, the likeliest first."""
    plain = {k.casefold().replace("_", ""): k for k in known}
    found = difflib.get_close_matches(word[:100].casefold().replace("_", ""), plain, n=count, cutoff=0.6)
    return tuple(plain[match] for match in found)


def names(expression: str) -> frozenset[str]:
    """Return the names of the values that an expression uses; raise ExpressionError when it is none."""
    tree = _parse(expression)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Values may be anything; arithmetic is for numbers, strings and lists, and everything else may only be passed on,
    chosen between, or compared with None.
    """
    try:
        return _value(_parse(expression), values)
    except _ProblemError as error:
        raise ExpressionError(expression, error.problem, error.nearest) from None


def affine(expression: str, variable: str, values: Mapping[str, Any]) -> Affine:
    """Return the scale and offset of an expression that is affine in one variable and can be undone."""
    result = evaluate(expression, {**values, variable: Affine(1.0, 0.0)})
    if not isinstance(result, Affine):
        raise ExpressionError(expression, "it does not depend on the weight")
    if result.scale == 0:
        raise ExpressionError(expression, "the weight is multiplied by 0, which cannot be undone")
    return result


@dataclass(frozen=True, slots=True)
class Affine:
    """The function x ↦ scale · x + offset."""

    scale: float
    offset: float

    def combine(self, operation: type[ast.operator], other: Any, *, mirrored: bool) -> Affine:
        """Return this function `operation` another one or a number; mirrored: the number stands left."""
        if isinstance(other, Affine) and operation in {ast.Add, ast.Sub}:
            sign = 1 if operation is ast.Add else -1
            return Affine(self.scale + sign * other.scale, self.offset + sign * other.offset)
        if _is_number(other):
            if operation is ast.Add:
                return Affine(self.scale, self.offset + other)
            if operation is ast.Sub:
                return Affine(-self.scale, other - self.offset) if mirrored else Affine(self.scale, self.offset - other)
            if operation is ast.Mult:
                return Affine(self.scale * other, self.offset * other)
            if operation is ast.Div and not mirrored and other != 0:
                return Affine(self.scale / other, self.offset / other)
        raise _ProblemError("it is not affine in the weight (a number times the weight plus a number)")


_ARITHMETIC: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
    ast.Pow: ("**", operator.pow),
}
_COMPARISONS: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], Any]]] = {
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
_FUNCTIONS = ("abs", "float", "int", "max", "min", "round", "sqrt")
_NODES = (
    ast.Constant, ast.Name, ast.Load, ast.UnaryOp, ast.UAdd, ast.USub, ast.Not, ast.BinOp, ast.BoolOp, ast.And, ast.Or,
    ast.Compare, ast.IfExp, ast.Call, ast.Tuple, ast.List, *_ARITHMETIC, *_COMPARISONS,
)  # fmt: skip


@lru_cache(maxsize=1024)
def _parse(expression: str) -> ast.expr:
    if len(expression) > MAX_TEXT:
        raise ExpressionError(expression, f"it has {len(expression)} characters, want at most {MAX_TEXT}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        problem = "it is no expression (a text as such needs quotes within: \"'gelu'\")"
        raise ExpressionError(expression, problem) from None
    try:
        _check(tree)
    except _ProblemError as error:
        raise ExpressionError(expression, error.problem, error.nearest) from None
    return tree


def _check(tree: ast.expr) -> None:
    """Refuse whatever is not in the language. Level by level, so that depth costs no stack."""
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
    raise _ProblemError("it is too long or too deeply nested")


def _check_node(node: ast.AST) -> None:
    if not isinstance(node, _NODES):
        raise _ProblemError(f"{_label(node)} is not part of the language")
    if isinstance(node, ast.Constant):
        if not (node.value is None or isinstance(node.value, (bool, int, float, str))):
            raise _ProblemError(f"{shown(node.value)} is no number or text")
        _bounded(node.value)
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
            called = ast.unparse(node.func)
            raise _ProblemError(f"there is no function {shown(called)}", nearest(called, _FUNCTIONS) or _FUNCTIONS)
        if node.keywords:
            raise _ProblemError(f"{node.func.id} takes no named arguments here")


def _label(node: ast.AST) -> str:
    words = {ast.Attribute: "a dotted name", ast.Subscript: "indexing", ast.keyword: "a named argument"}
    return words.get(type(node), f"{type(node).__name__}")


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911  (a case for each kind of node)
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name not in values:
                raise _ProblemError(f"unknown name {name}", nearest(name, values))
            return values[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _unary(op, _value(operand, values))
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(type(op), _value(left, values), _value(right, values))
        case ast.BoolOp(op=op, values=operands):
            result: Any = None
            for operand in operands:
                result = _value(operand, values)
                if _truth(result) is isinstance(op, ast.Or):
                    break
            return result
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _truth(_value(test, values)) else orelse, values)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _compare(_value(left, values), ops, [_value(c, values) for c in comparators])
        case ast.Call(func=ast.Name(id=function), args=arguments):
            return _call(function, [_value(a, values) for a in arguments])
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return _bounded(tuple(_value(e, values) for e in elements))
    raise _ProblemError(f"{_label(node)} is not part of the language")


def _unary(op: ast.unaryop, operand: Any) -> Any:
    if isinstance(op, ast.Not):
        return not _truth(operand)
    if isinstance(operand, Affine):
        return operand.combine(ast.Mult, -1 if isinstance(op, ast.USub) else 1, mirrored=False)
    if not _is_number(operand):
        raise _ProblemError(f"{_kind(operand)} has no sign")
    return -operand if isinstance(op, ast.USub) else +operand


def _binary(op: type[ast.operator], left: Any, right: Any) -> Any:
    if isinstance(left, Affine):
        return left.combine(op, right, mirrored=False)
    if isinstance(right, Affine):
        return right.combine(op, left, mirrored=True)
    sign, function = _ARITHMETIC[op]
    if not (_is_number(left) and _is_number(right)):
        _check_sequences(op, sign, left, right)
    elif op is ast.Pow and isinstance(left, int) and isinstance(right, int):
        _check_power(left, right)
    try:
        return _bounded(function(left, right))
    except ZeroDivisionError:
        raise _ProblemError(f"division by zero in {left} {sign} {right}") from None
    except OverflowError:
        raise _ProblemError(f"{left} {sign} {right} is too large") from None


def _check_power(base: int, exponent: int) -> None:
    """Integers of Python have no largest one: look before computing."""
    if exponent > 0 and abs(base).bit_length() * exponent > 2 * MAX_INTEGER.bit_length():
        raise _ProblemError(f"{base} ** {exponent} is too large")


def _check_sequences(op: type[ast.operator], sign: str, left: Any, right: Any) -> None:
    """Strings and lists can be joined and repeated, no more; `%` would be formatting."""
    if op is ast.Add and isinstance(left, (str, tuple)) and type(left) is type(right):
        return
    if op is ast.Mult and isinstance(left, (str, tuple)) and isinstance(right, int):
        if len(left) * right > MAX_ITEMS:
            raise _ProblemError(f"{_kind(left)} repeated {right} times is too long")
        return
    raise _ProblemError(f"{_kind(left)} {sign} {_kind(right)} has no meaning here")


def _compare(left: Any, ops: list[ast.cmpop], rights: list[Any]) -> bool:
    for op, right in zip(ops, rights, strict=True):
        sign, function = _COMPARISONS[type(op)]
        identity = isinstance(op, (ast.Is, ast.IsNot))
        if identity and right is not None:
            raise _ProblemError(f"{sign} is for None only; use == or !=")
        meaningless = _ProblemError(f"{_kind(left)} {sign} {_kind(right)} has no meaning here")
        if not (identity or (_is_plain(left) and _is_plain(right))):
            raise meaningless
        try:
            if not function(left, right):
                return False
        except TypeError:
            raise meaningless from None
        left = right
    return True


def _call(function: str, arguments: list[Any]) -> Any:
    if function in {"min", "max"} and len(arguments) == 1 and isinstance(arguments[0], tuple):
        arguments = list(arguments[0])
    wanted = {"min": range(1, MAX_ITEMS), "max": range(1, MAX_ITEMS), "round": range(1, 3)}.get(function, range(1, 2))
    if len(arguments) not in wanted:
        raise _ProblemError(f"{function} does not take {len(arguments)} arguments")
    for argument in arguments:
        if not _is_number(argument):
            raise _ProblemError(f"{function} is for numbers, not for {_kind(argument)}")
    if function == "round" and len(arguments) == 2 and not (isinstance(arguments[1], int) and abs(arguments[1]) <= 20):
        raise _ProblemError("round takes a number of digits between -20 and 20")
    if function == "sqrt" and arguments[0] < 0:
        raise _ProblemError(f"the square root of {arguments[0]} is no real number")
    table: dict[str, Callable[..., Any]] = {
        "abs": abs, "float": float, "int": int, "max": max, "min": min, "round": round, "sqrt": math.sqrt,
    }  # fmt: skip
    return _bounded(table[function](*arguments))


def _bounded(value: Any) -> Any:
    if isinstance(value, complex):
        raise _ProblemError("the result is no real number")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise _ProblemError("a number is larger than 2 ** 63")
    if isinstance(value, float) and not math.isfinite(value):
        raise _ProblemError("a number is not finite")
    if isinstance(value, (str, tuple)) and _leaves(value) > MAX_ITEMS:
        raise _ProblemError(f"{_kind(value)} is longer than {MAX_ITEMS}")
    return value


def _leaves(value: Any) -> int:
    if isinstance(value, tuple):
        return 1 + sum(_leaves(v) for v in value)
    return len(value) if isinstance(value, str) else 1


def _truth(value: Any) -> bool:
    if not _is_plain(value):
        raise _ProblemError(f"{_kind(value)} is neither true nor false")
    return bool(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(v) for v in value)
    return value is None or isinstance(value, (bool, int, float, str))


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, Affine):
        return "the weight"
    words = {bool: "a truth value", int: "a number", float: "a number", str: "a text", tuple: "a list"}
    return words.get(type(value), "an array")
