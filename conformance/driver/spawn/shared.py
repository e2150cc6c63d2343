"""One warm process for several sessions, each in its own thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from conformkit.conformance.driver.errors import LossKind, StartError
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
    """A worker factory that answers one caller at a time. Sessions don't close it: whoever made it does, by `close`.

    With `make`, one that was lost is replaced by whoever asks it for the next worker, for all who share it. Workers of
    the lost one are gone with it.
    """

    def __init__(self, factory: WorkerFactory, make: Callable[[], WorkerFactory] | None = None) -> None:
        self._factory, self._make = factory, make
        self._lock = threading.Lock()
        self._orders: list[tuple[WorkerFactory, int]] = []
        self._owners: dict[int, WorkerFactory] = {}
        """Who made a worker, by its process id."""

    def wait_ready(self) -> None:
        """Return once a worker can be made without delay. Raises StartError."""
        with self._lock:
            self._factory.wait_ready()

    def spawn(self, wire_fd: int, output_fd: int, memory: int | None) -> int:
        """Ask for a worker on these descriptors. Returns the number of the order."""
        with self._lock:
            self._renew()
            try:
                order = self._factory.spawn(wire_fd, output_fd, memory)
            except StartError:
                if not self._renew():
                    raise
                order = self._factory.spawn(wire_fd, output_fd, memory)
            self._orders.append((self._factory, order))
            return len(self._orders) - 1

    def spawned(self, order: int) -> int:
        """Return the process id of the worker that was asked for."""
        with self._lock:
            factory, number = self._orders[order]
            pid = factory.spawned(number)
            self._owners[pid] = factory
            return pid

    def reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a worker that was killed or is ending. Returns its wait status, None when it did not end."""
        with self._lock:
            return self._owners.pop(pid, self._factory).reap(pid, killed=killed)

    def kill(self, pid: int) -> None:
        """Kill a worker and its group, at once."""
        self._owners.get(pid, self._factory).kill(pid)

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
        """Whether the present one can still make workers."""
        return self._factory.alive

    def close(self) -> None:
        """End it, and every worker it made."""
        with self._lock:
            self._make = None
            self._factory.close()

    def _renew(self) -> bool:
        """Replace a warm process that was lost, if that is possible; return whether it was. Raises StartError."""
        if self._make is None or self._factory.alive:
            return False
        self._factory.close()
        self._factory = self._make()
        return True
