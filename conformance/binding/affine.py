"""Expressions that are affine in one name: `norm1.weight - 1` has a scale and an offset, and can be undone."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.binding.expressions import Symbol, evaluate
from conformkit.conformance.binding.language import ExpressionError, Problem

__all__ = ["Affine", "affine"]


@dataclass(frozen=True, slots=True)
class Affine(Symbol):
    """The function x ↦ scale · x + offset."""

    scale: float
    offset: float

    @property
    def kind(self) -> str:
        """What x is."""
        return "the weight"

    def combine(self, operation: type[ast.operator], other: Any, *, mirrored: bool) -> Affine:
        """Return this function `operation` another one or a number; mirrored: the number is on the left."""
        if isinstance(other, Affine) and operation in {ast.Add, ast.Sub}:
            sign = 1 if operation is ast.Add else -1
            return Affine(self.scale + sign * other.scale, self.offset + sign * other.offset)
        if isinstance(other, (bool, int, float)):
            if operation is ast.Add:
                return Affine(self.scale, self.offset + other)
            if operation is ast.Sub:
                return Affine(-self.scale, other - self.offset) if mirrored else Affine(self.scale, self.offset - other)
            if operation is ast.Mult:
                return Affine(self.scale * other, self.offset * other)
            if operation is ast.Div and not mirrored and other != 0:
                return Affine(self.scale / other, self.offset / other)
        raise Problem("it is not affine in the weight (a number times the weight plus a number)")


def affine(expression: str, variable: str, values: Mapping[str, Any]) -> Affine:
    """Return the scale and offset of an expression that is affine in one variable and can be undone."""
    result = evaluate(expression, {**values, variable: Affine(1.0, 0.0)})
    if not isinstance(result, Affine):
        raise ExpressionError(expression, "it does not depend on the weight")
    if result.scale == 0:
        raise ExpressionError(expression, "the weight is multiplied by 0, which cannot be undone")
    return result
