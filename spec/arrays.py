"""The array type of the law and of all code that judges by it: NumPy, any shape, any number format."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

__all__ = ["Array"]

Array = npt.NDArray[Any]
