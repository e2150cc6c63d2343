"""Initial weights: matrices whose rows are units, and whether each matrix has its own random numbers."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.spec.arrays import Array

__all__ = ["check_own_draws", "unit_matrices"]

_UNITS = ("k", "v", "up", "embedding", "src_embedding", "tgt_embedding")
_MAY_BE_ZERO = ("q", "gate")


def unit_matrices(weights: Mapping[str, Array]) -> dict[str, Array]:
    """Return the matrices whose rows are units, which must all differ; those of several experts one by one."""
    found: dict[str, Array] = {}
    for name, value in weights.items():
        role = name.split(".")[-2]
        matrix = value.ndim > 1 and name.endswith(".weight")
        if matrix and (role in _UNITS or (role in _MAY_BE_ZERO and value.any())):
            found |= {f"{name} {number}": one for number, one in enumerate(value)} if value.ndim > 2 else {name: value}
    return found


def check_own_draws(label: str, weights: Mapping[str, Array]) -> None:
    """Fail where two matrices of units, as constructed, hold the same numbers."""
    matrices = unit_matrices(weights)
    check(f"{label} has no weights to compare", bool(matrices))
    for (name, one), (second, two) in itertools.combinations(matrices.items(), 2):
        check(f"{label}: {second} is a copy of {name}", not np.array_equal(one, two))
