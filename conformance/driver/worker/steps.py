"""What one call computes, step by step: operations, what they were given, and the numbers that each gave.

A value is named by its place in the list, and given only values before it, so that a record has no circles. Numbers of
values, texts and operands are bounded here: whatever the implementation does, the reply stays small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from conformkit.conformance.driver.wire.arrays import Array

__all__ = ["CallSteps"]

_MAX_STEPS = 4000
_MOST_NUMBERS = 1 << 21
_NAME = 200
_OPERANDS = 64
_SCALARS = 8


@dataclass
class CallSteps:
    """A record in the making; `cut` says that something did not fit, and that nothing after it is recorded."""

    values: list[dict[str, Any]] = field(default_factory=list)
    cut: bool = False
    _numbers: list[Array] = field(default_factory=list)
    _count: int = 0

    def add(
        self, operation: str, given: Sequence[int], array: Array, *, part: str = "", name: str = "",
        scalars: Sequence[Any] = (),
    ) -> int | None:  # fmt: skip
        """Note a value, and return its place; None where the record is full.

        `part` is the part of the component that was being called, `name` that of a parameter, buffer or input.
        """
        if self.cut or len(self.values) >= _MAX_STEPS or self._count + array.size > _MOST_NUMBERS:
            self.cut = True
            return None
        self._count += array.size
        self._numbers.append(array.astype(np.float64).ravel())
        self.values.append({
            "op": operation[:_NAME], "given": list(given[:_OPERANDS]), "shape": list(array.shape),
            "part": part[:_NAME], "name": name[:_NAME], "scalars": [*filter(_is_finite, scalars)][:_SCALARS],
        })  # fmt: skip
        return len(self.values) - 1

    def numbers(self) -> Array:
        """Return the numbers of all values, one after another."""
        return np.concatenate(self._numbers) if self._numbers else np.zeros(0)


def _is_finite(value: Any) -> bool:
    return type(value) in {int, float} and abs(value) < 2**53 and math.isfinite(value)
