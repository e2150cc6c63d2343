"""The boundary around everything that an implementation says or does: it costs a component or a clause, never the run.

Code that reads, places or compares what came back raises whatever Python raises on a strange value. Nobody can list
those errors, so whoever loads, probes or judges catches all of them, except the few that are not about the
implementation.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from conformkit.conformance.driver.errors import IsolationUnavailable, StartError
from conformkit.conformance.driver.wire.text import clean

__all__ = ["NOT_ITS_FAULT", "OutOfTime", "incomprehensible"]


class OutOfTime(Exception):
    """The time limit of the run was reached: further requests are not answered."""


NOT_ITS_FAULT = (OutOfTime, StartError, IsolationUnavailable)
"""Errors that end a run whatever is judged."""


def incomprehensible(trouble: Exception) -> str:
    """Return what was raised over a strange reply, and where in the kit."""
    frames = traceback.extract_tb(trouble.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "code"
    sentence = clean(f"{type(trouble).__name__}: {trouble}", 300)
    return f"{sentence} (in the kit's own {place}; if your code is right, please report it)"
