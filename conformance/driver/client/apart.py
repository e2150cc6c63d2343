"""A worker that has not loaded the implementation: it starts a program of its own, which repeats calls."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from conformkit.conformance.driver.client.channel import Broken, Channel
from conformkit.conformance.driver.client.interface import Arrays, Limits, Reply, raise_failure
from conformkit.conformance.driver.client.replies import check_reply
from conformkit.conformance.driver.errors import DriverError, LossKind, ProtocolError, WorkerLost
from conformkit.conformance.driver.spawn.usage import Meter
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.driver.wire import frames as wire

__all__ = ["Apart"]

_HELLO_SECONDS = 60.0
_END_SECONDS = 5.0


class Apart:
    """One more worker of a factory, for a few requests. Raises StartError, DriverError."""

    def __init__(self, factory: WorkerFactory, limits: Limits) -> None:
        self._factory, self._seq, self._waits = factory, 0, False
        self._meter: Meter | None = None
        self._channel = Channel(limits.output_bytes, self._excess)
        try:
            try:  # without a limit of addresses, which tells who set it; memory is watched
                self._channel.order = factory.spawn(self._channel.wire_fd, self._channel.output_fd, None)
            finally:
                self._channel.handed_over()
            pid = self._channel.pid = factory.spawned(self._channel.order)
            self._meter = Meter(pid, memory_bytes=limits.memory_bytes, processes=limits.processes)
            with _as_lost():
                check_reply({}, 0, Reply(*self._channel.receive(_HELLO_SECONDS)))
        except BaseException:
            self.close()
            raise

    def ask(self, header: Mapping[str, Any], arrays: Arrays, seconds: float) -> Reply:
        """Carry out one request. Raises WorkerLost, ImplementationFailure."""
        self._seq, self._waits = self._seq + 1, False
        with _as_lost():
            reply = Reply(*self._channel.exchange(wire.pieces({**header, "seq": self._seq}, arrays), seconds))
            check_reply(header, self._seq, reply)
        raise_failure(reply.header)
        return reply

    def prepare(self) -> None:
        """Let it start the program, which imports torch if workers do, and then waits for its request."""
        self.ask({"op": "prepare", "begin": True, "torch": self._factory.torch}, {}, _HELLO_SECONDS)
        self._waits = True

    def close(self) -> None:
        """End it, with a program that has not been needed."""
        if self._waits:
            with contextlib.suppress(DriverError):
                self.ask({"op": "prepare", "begin": False, "torch": False}, {}, _END_SECONDS)
        if self._channel.pid is not None:
            self._factory.kill(self._channel.pid)
            self._factory.reap(self._channel.pid, killed=True)
        self._channel.close()

    def _excess(self) -> tuple[LossKind, str] | None:
        return (self._meter.excess() if self._meter is not None else None) or self._factory.excess()


@contextlib.contextmanager
def _as_lost() -> Iterator[None]:
    """Tell of a worker that can no longer be reached as one that was lost."""
    try:
        yield
    except Broken as broken:
        raise WorkerLost(broken.kind or "exit", broken.detail) from None
    except ProtocolError as error:
        raise WorkerLost("protocol", str(error)) from error
