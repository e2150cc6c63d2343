"""The values of expressions: arithmetic and choices over named values, for `conform.toml`.

Trees are walked here, never compiled (language.py says what they may contain).
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from conformkit.conformance.binding.language import (
    ARITHMETIC,
    COMPARISONS,
    FUNCTIONS,
    MAX_INTEGER,
    MAX_ITEMS,
    ExpressionError,
    Problem,
    bounded,
    label,
    parse,
)
from conformkit.conformance.binding.messages import nearest

__all__ = ["Symbol", "evaluate"]


class Symbol(ABC):
    """A value that stands for something unknown and implements its own arithmetic."""

    __slots__ = ()

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name in messages."""

    @abstractmethod
    def combine(self, operation: type[ast.operator], other: Any, *, mirrored: bool) -> Any:
        """Return this `operation` other; mirrored: the other is on the left. Raise Problem if that has no meaning."""


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression.

    Values may be anything; arithmetic is for numbers, strings and lists, and everything else may only be passed on,
    chosen between, or compared with None.
    """
    try:
        return _value(parse(expression), values)
    except Problem as error:
        raise ExpressionError(expression, error.problem, error.nearest) from None


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:  # noqa: C901, PLR0911, PLR0912  (a case for each kind of node)
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            if name not in values:
                raise Problem(f"unknown name {name}", nearest(name, values))
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
            return bounded(tuple(_value(e, values) for e in elements))
        case ast.Subscript(value=several, slice=place):
            return _item(_value(several, values), _value(place, values))
    raise Problem(f"{label(node)} is not part of the language")


def _item(several: Any, place: Any) -> Any:
    """Return an item of a list: `betas[0]` for code that takes the two separately."""
    if not isinstance(several, tuple | list):
        raise Problem(f"{_kind(several)} has no items: indexing is for lists")
    if isinstance(place, bool) or not isinstance(place, int):
        raise Problem(f"a list is indexed by a whole number, not by {_kind(place)}")
    if not -len(several) <= place < len(several):
        raise Problem(f"there is no item {place} in a list of {len(several)}")
    return several[place]


def _unary(op: ast.unaryop, operand: Any) -> Any:
    if isinstance(op, ast.Not):
        return not _truth(operand)
    if isinstance(operand, Symbol):
        return operand.combine(ast.Mult, -1 if isinstance(op, ast.USub) else 1, mirrored=False)
    if not _is_number(operand):
        raise Problem(f"{_kind(operand)} has no sign")
    return -operand if isinstance(op, ast.USub) else +operand


def _binary(op: type[ast.operator], left: Any, right: Any) -> Any:
    if isinstance(left, Symbol):
        return left.combine(op, right, mirrored=False)
    if isinstance(right, Symbol):
        return right.combine(op, left, mirrored=True)
    sign, function = ARITHMETIC[op]
    if not (_is_number(left) and _is_number(right)):
        _check_sequences(op, sign, left, right)
    elif op is ast.Pow and isinstance(left, int) and isinstance(right, int):
        _check_power(left, right)
    try:
        return bounded(function(left, right))
    except ZeroDivisionError:
        raise Problem(f"division by zero in {left} {sign} {right}") from None
    except OverflowError:
        raise Problem(f"{left} {sign} {right} is too large") from None


def _check_power(base: int, exponent: int) -> None:
    """Python's integers are unbounded: check the size before computing."""
    if exponent > 0 and abs(base).bit_length() * exponent > 2 * MAX_INTEGER.bit_length():
        raise Problem(f"{base} ** {exponent} is too large")


def _check_sequences(op: type[ast.operator], sign: str, left: Any, right: Any) -> None:
    """Strings and lists can be joined and repeated, no more; `%` would be formatting."""
    if op is ast.Add and isinstance(left, (str, tuple)) and type(left) is type(right):
        return
    if op is ast.Mult and isinstance(left, (str, tuple)) and isinstance(right, int):
        if len(left) * right > MAX_ITEMS:
            raise Problem(f"{_kind(left)} repeated {right} times is too long")
        return
    raise Problem(f"{_kind(left)} {sign} {_kind(right)} has no meaning here")


def _compare(left: Any, ops: list[ast.cmpop], rights: list[Any]) -> bool:
    for op, right in zip(ops, rights, strict=True):
        sign, function = COMPARISONS[type(op)]
        identity = isinstance(op, (ast.Is, ast.IsNot))
        if identity and right is not None:
            raise Problem(f"{sign} is for None only; use == or !=")
        meaningless = Problem(f"{_kind(left)} {sign} {_kind(right)} has no meaning here")
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
        raise Problem(f"{function} does not take {len(arguments)} arguments")
    for argument in arguments:
        if not _is_number(argument):
            raise Problem(f"{function} is for numbers, not for {_kind(argument)}")
    if function == "round" and len(arguments) == 2 and not (isinstance(arguments[1], int) and abs(arguments[1]) <= 20):
        raise Problem("round takes a number of digits between -20 and 20")
    if function == "sqrt" and arguments[0] < 0:
        raise Problem(f"the square root of {arguments[0]} is not a real number")
    return bounded(FUNCTIONS[function](*arguments))


def _truth(value: Any) -> bool:
    if not _is_plain(value):
        raise Problem(f"{_kind(value)} is neither true nor false")
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
    if isinstance(value, Symbol):
        return value.kind
    words = {bool: "a boolean", int: "a number", float: "a number", str: "a string", tuple: "a list"}
    return words.get(type(value), "an array")
