"""The arrays that cross the wire, and the error for a result that is not one of them."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Array", "OutputError"]

Array = np.ndarray[Any, Any]


class OutputError(Exception):
    """The implementation returned something that is not a plain array."""
