"""One warm process for several sessions, each in its own thread."""

from __future__ import annotations

import threading
from typing import Any

from conformkit.conformance.driver.errors import LossKind
from conformkit.conformance.driver.spawn.warm import WorkerFactory

__all__ = ["LentFactory", "SharedFactory"]


class LentFactory:
    """A worker factory that outlives the run that it is lent to: to close it does nothing."""

    def __init__(self, factory: WorkerFactory) -> None:
        self._factory = factory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._factory, name)

    def close(self) -> None:
        """Does nothing: the lender closes it."""


class SharedFactory:
    """A worker factory that answers one caller at a time. Sessions don't close it: whoever made it does, by `close`."""

    def __init__(self, factory: WorkerFactory) -> None:
        self._factory = factory
        self._lock = threading.Lock()

    def wait_ready(self) -> None:
        """Return once a worker can be made without delay. Raises StartError."""
        with self._lock:
            self._factory.wait_ready()

    def spawn(self, wire_fd: int, output_fd: int, memory: int | None) -> int:
        """Ask for a worker on these descriptors. Returns the number of the order."""
        with self._lock:
            return self._factory.spawn(wire_fd, output_fd, memory)

    def spawned(self, order: int) -> int:
        """Return the process id of the worker that was asked for."""
        with self._lock:
            return self._factory.spawned(order)

    def reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a worker that was killed or is ending. Returns its wait status, None when it did not end."""
        with self._lock:
            return self._factory.reap(pid, killed=killed)

    def kill(self, pid: int) -> None:
        """Kill a worker and its group, at once."""
        self._factory.kill(pid)

    def excess(self) -> tuple[LossKind, str] | None:
        """Return the limit that all its workers together exceed, and a sentence about it."""
        return self._factory.excess()

    @property
    def note(self) -> str:
        """A note about the isolation for readers of the report."""
        return self._factory.note

    @property
    def torch(self) -> bool:
        """Whether its workers come with torch imported."""
        return self._factory.torch

    @property
    def alive(self) -> bool:
        """Whether it can still make workers."""
        return self._factory.alive

    def close(self) -> None:
        """End it, and every worker it made."""
        with self._lock:
            self._factory.close()
