"""How patient the harness is: time that a worker only waits for a processor is not its own.

A limit of 20 s is far above what right code takes on an idle machine. On a busy one a worker may get no processor for
most of that time, and on a slow one everything takes longer; neither is the implementation's fault.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

__all__ = ["MOST_PATIENCE", "THIS_THREAD", "seconds_waited", "slowness"]

THIS_THREAD = "thread-self"
MOST_PATIENCE = 3.0
"""A request takes at most so many times its limit longer, whatever a worker does to look as if it waited."""
_ROUNDS = 30_000
_USUAL_SECONDS = 0.003
"""What the rounds take on a machine that is slow, and not yet very slow."""
_SLOWEST = 10.0


def seconds_waited(pid: int | str) -> float:
    """Return for how long a process, or THIS_THREAD, has been ready and waited for a processor; 0 if unknown."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


@cache
def slowness() -> float:
    """Return how many times slower this machine computes than a slow one does, at least 1, measured in milliseconds."""
    return min(_SLOWEST, max(1.0, min(_round() for _ in range(3)) / _USUAL_SECONDS))


def _round() -> float:
    started, total = time.perf_counter(), 0
    for number in range(_ROUNDS):
        total += number % 7
    return time.perf_counter() - started
