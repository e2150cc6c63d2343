"""One warm process for several sessions, each of which lives in a thread of its own."""

from __future__ import annotations

import threading
from typing import Any

from conformkit.conformance.driver.errors import LossKind
from conformkit.conformance.driver.spawn.warm import Nursery

__all__ = ["LentNursery", "SharedNursery"]


class LentNursery:
    """A nursery that outlives the run that it is lent to: to close it does nothing."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nursery, name)

    def close(self) -> None:
        """Whoever lent it closes it."""


class SharedNursery:
    """A nursery that answers one caller at a time. Sessions don't close it: whoever made it does, by `close`."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._lock = threading.Lock()

    def wait_ready(self) -> None:
        """Return once a worker can be made without delay. Raises StartError."""
        with self._lock:
            self._nursery.wait_ready()

    def spawn(self, wire_fd: int, output_fd: int, memory: int | None) -> int:
        """Ask for a worker on these descriptors. Returns the number of the order."""
        with self._lock:
            return self._nursery.spawn(wire_fd, output_fd, memory)

    def spawned(self, order: int) -> int:
        """Return the process id of the worker that was asked for."""
        with self._lock:
            return self._nursery.spawned(order)

    def reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a worker that was killed or is ending. Returns its wait status, None when it did not end."""
        with self._lock:
            return self._nursery.reap(pid, killed=killed)

    def kill(self, pid: int) -> None:
        """Kill a worker and its group, at once."""
        self._nursery.kill(pid)

    def excess(self) -> tuple[LossKind, str] | None:
        """Return the limit that all its workers together break, and a sentence about it."""
        return self._nursery.excess()

    @property
    def note(self) -> str:
        """What the reader of a report should know about the isolation."""
        return self._nursery.note

    @property
    def torch(self) -> bool:
        """Whether its workers come with torch imported."""
        return self._nursery.torch

    @property
    def alive(self) -> bool:
        """Whether it can still make workers."""
        return self._nursery.alive

    def close(self) -> None:
        """End it, and every worker it made."""
        with self._lock:
            self._nursery.close()
