"""How far a right implementation may be from the exact result, by number format and depth.

Derivation. One rounding costs at most half a unit in the last place: 1.1e-16 in float64, 6e-8 in float32, 4.9e-4 in
float16, 3.9e-3 in bfloat16. The widest sum in a drawn example has fewer than 100 terms and a component chains fewer
than ten sums, so that rounding alone stays below about 30 units a component; softmax and norms at most multiply it by
the spread of what they read, which is drawn below 10. The worst error measured on right float32 implementations,
differently written, is 2.6e-6. The table allows four times that, in proportion to the largest number of the expected
result, and once more for each block that a result passes through. The float64 column is the same multiple of its
own precision, rounded up to 1e-9, which leaves room for tables and constants that were rounded on the way.

Half precision is wider where a softmax is: one rounding of a score s changes its weight by s times the format's unit,
which is 4 % in bfloat16 for a score of 10. Scores are therefore drawn below 5 there, and both formats are allowed ten
units. The worst error measured on right code in either is 6 of them. Signs of roundings are random: what passes many
components is off by little more than what passes two, where 15 units were measured, and is allowed 25 at most.

Finite differences: a central difference with step h of a function of order 1 errs by h² plus rounding / h; with
h = 1e-5 in float64 that is about 1e-10 + 1e-11, and 1e-6 leaves room for curvature. Float32 differences need h = 1e-2
and are good to 2e-2. In half precision a step that shows is as large as what it is compared with: gradients are then
compared with exact differences of the definition, from which rounding there and back keeps them by two percent at most
in bfloat16; five times that is allowed.
"""

from __future__ import annotations

import math
from typing import Literal

__all__ = ["EXACT", "GRADIENT", "ROOM", "STEP", "Precision", "tolerance"]

Precision = Literal["float64", "float32", "float16", "bfloat16"]

EXACT = 0.0

_ORACLE: dict[Precision, float] = {"float64": 1e-9, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}

GRADIENT: dict[Precision, float] = {"float64": 1e-6, "float32": 2e-2, "float16": 2e-2, "bfloat16": 1e-1}
"""For a gradient against a difference of the implementation itself, in half precision of the definition, relative to
the larger of the two."""

STEP: dict[Precision, float] = {"float64": 1e-5, "float32": 1e-2}
"""The step of that difference."""

ROOM = 1000.0
"""How far inputs of order 1 may be scaled in float16, which ends at 65504: their products reach 60 times as far."""


def tolerance(precision: Precision, depth: int = 1) -> float:
    """Return the relative error allowed to a result that went through `depth` components."""
    most = 2.5 if precision in {"float16", "bfloat16"} else math.inf
    return _ORACLE[precision] * min(max(1, depth), most)
