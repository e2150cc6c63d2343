"""The error allowed to a correct implementation, by number format and depth.

Derivation. One rounding costs at most half a unit in the last place: 1.1e-16 in float64, 6e-8 in float32, 4.9e-4 in
float16, 3.9e-3 in bfloat16. The widest sum in a drawn example has fewer than 100 terms and a component chains fewer
than ten sums, so rounding alone stays below about 30 units per component; softmax and norms multiply it at most by
the spread of their inputs, which is drawn below 10. The worst error measured on correct float32 implementations in
various styles is 2.6e-6. The table allows four times that, in proportion to the largest number of the expected
result, and once more for each block that a result passes through. The float64 column is the same multiple of its
own precision, rounded up to 1e-9, which leaves room for rounded tables and constants.

Half precision needs more where there is a softmax: one rounding of a score s changes its weight by s times the format's
unit, which is 4 % in bfloat16 for a score of 10. Scores are therefore drawn below 5 there, and both formats are allowed
ten units. The worst error measured on correct code in either is 6 units. Signs of roundings are random: after many
components the error is little more than after two. There 15 units were measured, and 32 in a model of gated networks
between norms; at most 40 are allowed. Where a clause compares with a definition, drawn roundings may allow more.

Finite differences: a central difference with step h of a function of order 1 errs by h² plus rounding / h; with
h = 1e-5 in float64 that is about 1e-10 + 1e-11, and 1e-6 leaves room for curvature. Float32 differences need h = 1e-2
and are good to 2e-2. In half precision a visible step is as large as the gradient's own scale: gradients are then
compared with exact differences of the definition; rounding causes at most two percent of difference in bfloat16, and
five times that is allowed.
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
"""The largest scale of inputs of order 1 in float16, whose maximum is 65504: products are up to 60 times larger."""


def tolerance(precision: Precision, depth: int = 1) -> float:
    """Return the relative error allowed to a result that passed through `depth` components."""
    most = 4.0 if precision in {"float16", "bfloat16"} else math.inf
    return _ORACLE[precision] * min(max(1, depth), most)
