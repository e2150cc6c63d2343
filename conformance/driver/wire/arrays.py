"""The arrays that cross the wire, what selects the first of them, and the error for what is none of them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["FOREMOST", "Array", "OutputError"]

FOREMOST = ""
"""Selects the first array of a result, whatever others are called; no selector takes logits before others."""
Array = np.ndarray[Any, Any]


class OutputError(Exception):
    """The implementation returned something that is not a plain array."""
