"""The harness's end of one worker: its wire, what it prints, and the limits on both."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from conformkit.conformance.driver.client.beside import do_waiting_work, has_waiting_work
from conformkit.conformance.driver.client.pace import MOST_PATIENCE, seconds_waited
from conformkit.conformance.driver.errors import LossKind, ProtocolError
from conformkit.conformance.driver.spawn.usage import amount, has_ended
from conformkit.conformance.driver.wire import frames as wire

__all__ = ["Broken", "Channel"]

_TICK = 0.05
_PIECES = 512
"""How many pieces of memory one call of the system sends at most; it may take a thousand."""
Unsent = list[memoryview]
"""Pieces of a frame that are not sent yet."""


class Broken(Exception):
    """The worker can no longer be reached. Without a kind, only its exit status will tell why."""

    def __init__(self, kind: LossKind | None, detail: str) -> None:
        self.kind = kind
        self.detail = detail
        super().__init__(detail)


class Channel:
    """Sends a frame and waits for one; meanwhile it drains what the worker prints and watches what it uses.

    `excess` returns the limit that is broken, if any; it is called regularly while there is nothing to read.
    """

    def __init__(self, output_bytes: int, excess: Callable[[], tuple[LossKind, str] | None]) -> None:
        self._wire, self.wire_fd = _socket_pair()
        self._output, self.output_fd = os.pipe()
        os.set_blocking(self._output, False)
        self._excess = excess
        self._looked = 0.0
        self._output_bytes = output_bytes
        self._printed = bytearray()
        self._watch_output = True
        self._waited: float | None = None
        """How long the worker had waited for a processor when a request began to take long."""
        self.busy = False
        """Whether a request has been sent and something else is being done before its reply is read."""
        self.order = 0
        """The number of the order for this worker."""
        self.pid: int | None = None

    def handed_over(self) -> None:
        """Close the worker's ends; it has its own copies by now."""
        os.close(self.wire_fd)
        os.close(self.output_fd)

    def exchange(self, frame: list[memoryview], seconds: float) -> tuple[dict[str, Any], dict[str, Any]]:
        """Send a frame and return the next one that comes back."""
        if self._readable():
            raise Broken(*self._unasked())
        return self.receive(seconds, frame)

    def receive(self, seconds: float, frame: Sequence[memoryview] = ()) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the next frame, having sent the pieces of `frame` meanwhile. Raises Broken, ProtocolError."""
        deadline = time.monotonic() + seconds
        self._waited = None
        unsent = self._send(list(frame))
        if has_waiting_work():
            while unsent and not self._readable():  # the worker begins when it has read all
                unsent = self._wait(unsent, deadline, seconds)
            self.busy = True
            do_waiting_work()
            self.busy = False
        prefix, unsent = self._read(wire.LENGTHS, unsent, deadline, seconds)
        head_length, payload_length = wire.lengths(prefix)
        head, unsent = self._read(head_length, unsent, deadline, seconds)
        payload, unsent = self._read(payload_length, unsent, deadline, seconds)
        self.drain()
        if unsent:
            raise ProtocolError("the reply came before the request was read")
        return wire.decode(head, payload, foreign=True)

    def drain(self) -> None:
        """Read what has been printed so far. Raises Broken when it is too much."""
        while self._watch_output:
            try:
                chunk = os.read(self._output, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                chunk = b""
            self._watch_output = bool(chunk)
            self._printed += chunk
            if len(self._printed) > self._output_bytes:
                del self._printed[self._output_bytes :]
                raise Broken("output", f"printed more than {amount(self._output_bytes)}")

    def take_output(self) -> bytes:
        """Return what was printed since the last call."""
        with contextlib.suppress(Broken):
            self.drain()
        taken = bytes(self._printed)
        self._printed.clear()
        return taken

    def close(self) -> None:
        """Close both of our ends."""
        self._wire.close()
        os.close(self._output)

    def _read(self, size: int, unsent: Unsent, deadline: float, seconds: float) -> tuple[memoryview, Unsent]:
        buffer = wire.room(size)
        done = 0
        while done < size:
            try:
                count = self._wire.recv_into(buffer[done:])
            except BlockingIOError:
                unsent = self._wait(unsent, deadline, seconds)
                continue
            except OSError:
                count = 0
            if not count:
                with contextlib.suppress(Broken):
                    self.drain()
                raise Broken(None, "closed its wire")
            done += count
        return buffer, unsent

    def _wait(self, unsent: Unsent, deadline: float, seconds: float) -> Unsent:
        """Wait for bytes to read, room to write, or the end of a short interval."""
        left = deadline - time.monotonic()
        if left <= 0:
            left += self._patience(seconds)
        if left <= 0:
            raise Broken("timeout", f"no answer after {seconds:g} s")
        poll = select.poll()
        poll.register(self._wire, select.POLLIN | (select.POLLOUT if unsent else 0))
        if self._watch_output:
            poll.register(self._output, select.POLLIN)
        events = dict(poll.poll(1000 * min(_TICK, left)))
        if self._output in events:
            self.drain()
        self._look()
        if not events and self._waited is None and self.pid is not None:
            self._waited = seconds_waited(self.pid)
        if not events and self.pid is not None and has_ended(self.pid) and not self._readable():
            raise Broken(None, "ended")  # its child processes may still hold its end of the wire
        return self._send(unsent)

    def _patience(self, seconds: float) -> float:
        """Return how much longer this request may take, since the worker did not get a processor."""
        if self.pid is None or self._waited is None:
            return 0.0
        return min(seconds_waited(self.pid) - self._waited, MOST_PATIENCE * seconds)

    def _send(self, unsent: Unsent) -> Unsent:
        """Send as much as there is room for, and return the rest."""
        try:
            return wire.unsent(unsent, self._wire.sendmsg(unsent[:_PIECES])) if unsent else unsent
        except BlockingIOError:
            return unsent
        except OSError:
            return []  # the other end is closed: the next read reports it

    def _readable(self) -> bool:
        poll = select.poll()
        poll.register(self._wire, select.POLLIN)
        return bool(poll.poll(0))

    def _unasked(self) -> tuple[LossKind | None, str]:
        try:
            said = self._wire.recv(1, socket.MSG_PEEK)
        except OSError:
            said = b""
        return ("protocol", "wrote on the wire without being asked") if said else (None, "closed its wire")

    def _look(self) -> None:
        """Check what the worker uses, at most once per tick. Raises Broken when it is too much."""
        now = time.monotonic()
        if now - self._looked < _TICK:
            return
        self._looked = now
        excess = self._excess()
        if excess is not None:
            raise Broken(*excess)


def _socket_pair() -> tuple[socket.socket, int]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return ours, theirs.detach()
