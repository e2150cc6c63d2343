"""Masks that hide everything: what reads nothing gives the same whether others read something or not."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check_close, check_differs
from conformkit.spec.arrays import Array

__all__ = ["check_nothing_shown"]


def check_nothing_shown(label: str, beside: Array, alone: Array, unmasked: Array, tolerance: float) -> None:
    """Compare what reads nothing beside others that read something with the same where none does.

    That the former is NaN is another clause's affair; then the latter must only differ from what has no mask.
    """
    if np.isfinite(beside).all() and np.isfinite(alone).all():
        check_close(label, alone, beside, tolerance)
    elif np.isfinite(alone).all():
        check_differs(f"{label} compared with the one without a mask,", alone, unmasked)
