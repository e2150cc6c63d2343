"""The line of the implementation that is being carried out."""

from __future__ import annotations

import sys
from collections.abc import Callable

__all__ = ["Place", "place_of_caller"]

Place = Callable[[str], str | None]
"""Returns the name to show for a file of the implementation, None for any other file."""


def place_of_caller(place: Place) -> str:
    """Return the implementation's innermost frame, `mypkg/attention.py:31 in forward`, or that there is none."""
    frame = sys._getframe(1)  # noqa: SLF001 - no public name that is as fast
    while frame is not None:
        if file := place(frame.f_code.co_filename):
            return f"{file}:{frame.f_lineno} in {frame.f_code.co_name}"[:500]
        if frame.f_back is None:
            break
        frame = frame.f_back
    return "outside the implementation"
