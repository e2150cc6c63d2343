"""When a run ends: what is asked until then is answered, and nothing after it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from conformkit.conformance.driver.client.interface import Driver
from conformkit.conformance.driver.client.pace import MOST_PATIENCE, THIS_THREAD, seconds_waited
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.engine.boundary import OutOfTime

__all__ = ["Deadline", "seconds_running"]


def seconds_running(session: Driver) -> float:
    """Return the time of a clock that stands still while this thread or a worker waits for a processor.

    What is slow by this clock is slow on an idle machine, too.
    """
    return time.monotonic() - seconds_waited(THIS_THREAD) - session.waited


@dataclass(slots=True)
class Deadline:
    """The end of a run on the monotonic clock; it moves by `patience` at most.

    It moves with the time in which the harness and the worker are ready and wait for a processor: so a busy machine
    leaves as many clauses unjudged as an idle one.
    """

    end: float | None = None
    patience: float = 0.0
    _waited: float = 0.0
    """What the harness had waited when the run began."""

    @classmethod
    def after(cls, seconds: float, *, patient: bool) -> Deadline:
        """Return the deadline of a run that begins now."""
        patience = MOST_PATIENCE * seconds if patient else 0.0
        return cls(time.monotonic() + seconds, patience, seconds_waited(os.getpid()))

    def left(self, session: Driver) -> float | None:
        """Return how long the run may still take, None if it has no end."""
        if self.end is None:
            return None
        waited = seconds_waited(os.getpid()) - self._waited + session.waited if self.patience else 0.0
        return self.end + min(waited, self.patience) - time.monotonic()

    def check(self, session: Driver) -> float | None:
        """Return the time limit of a request, if it differs from the usual one. Raises OutOfTime."""
        left = self.left(session)
        if left is None:
            return None
        if left <= 0:
            raise OutOfTime
        limits = session.limits
        if limits.load_seconds > left:
            session.limits = replace(limits, load_seconds=left)
        return min(limits.call_seconds, left)

    def leave(self, seconds: float) -> None:
        """Let the run take at least so long from now on."""
        if self.end is not None:
            self.end = max(self.end, time.monotonic() + seconds)

    @contextmanager
    def holds(self, session: Driver) -> Iterator[float | None]:
        """Yield the time limit of a request. Raises OutOfTime, also for a worker that the deadline has ended."""
        seconds = self.check(session)
        try:
            yield seconds
        except WorkerLost:
            self.check(session)
            raise
