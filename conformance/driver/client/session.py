"""Run an implementation in a worker process: start it, send requests, survive its end, and report how it ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from typing import Any, NoReturn

from conformkit.conformance.driver.client.apart import Apart
from conformkit.conformance.driver.client.channel import Broken, Channel
from conformkit.conformance.driver.client.inprocess import InProcess
from conformkit.conformance.driver.client.interface import (
    NO_ARRAYS,
    Arrays,
    Driver,
    Limits,
    LoadReply,
    Reply,
    raise_failure,
)
from conformkit.conformance.driver.client.pace import seconds_waited
from conformkit.conformance.driver.client.replies import check_reply
from conformkit.conformance.driver.errors import DriverError, LossKind, ProtocolError, StartError, WorkerLost
from conformkit.conformance.driver.location import Location, locate
from conformkit.conformance.driver.spawn.usage import Meter
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.driver.wire import frames as wire
from conformkit.conformance.driver.wire.text import clean

__all__ = ["Driver", "InProcess", "Limits", "LoadReply", "Location", "Reply", "Session", "locate"]

_HELLO_SECONDS = 60.0
_SHOWN = 20_000
_FACTS = ("framework", "version", "module", "file")
_NOTES, _NOTE = 12, 400
"""How many notes about loading are shown, and how much of each."""


class Session(Driver):
    """Supervises one implementation's worker. The process starts when this is made, and gets ready meanwhile.

    `warm` makes its workers, and whatever `make` makes does so where there is none, or none any more: by default a
    process without a sandbox. What `fresh` makes holds the worker of `apart`, where nothing of the others is left.
    """

    def __init__(
        self,
        location: Location,
        framework: str | None = None,
        limits: Limits = Limits(),  # noqa: B008
        preload_torch: bool = False,
        warm: WorkerFactory | None = None,
        make: Callable[[], WorkerFactory] | None = None,
        device: str = "cpu",
        fresh: Callable[[], WorkerFactory] | None = None,
    ) -> None:
        super().__init__(location, framework, limits, device)
        self._make = make or (lambda: worker_factory(limits.threads, torch=preload_torch))
        self._fresh = fresh
        self._owns_factory = warm is None
        self._factory = warm or self._make()
        self._meter: Meter | None = None
        self._channel: Channel | None = None
        self._pending: Channel | None = self._ask_for_worker()
        self._apart: Apart | None = None
        """Another worker, in which a program of its own waits."""
        self._left_over = ""
        self._seq = 0
        self._waited = 0.0

    @property
    def lost(self) -> bool:
        """Whether the worker is gone."""
        return self._channel is None

    @property
    def waited(self) -> float:
        """For how many seconds its workers have been ready and waited for a processor."""
        pid = self._channel.pid if self._channel is not None else None
        return self._waited + (seconds_waited(pid) if pid is not None else 0.0)

    @property
    def note(self) -> str:
        """A note about the isolation for readers of the report."""
        return self._factory.note

    def start(self) -> LoadReply:
        """Wait for the first worker and let it load the implementation."""
        if self._pending is None:
            message = "the session is already started"
            raise DriverError(message)
        try:
            return self._begin(self._pending)
        except StartError:
            if self._factory.alive:
                raise
            return self.restart()  # what makes workers was lost meanwhile, to another session's worker perhaps

    def restart(self) -> LoadReply:
        """Replace the worker by a fresh one, and load the implementation again."""
        self._discard()
        for _ in range(2):  # what makes workers, if it is shared and was lost, is replaced when it is asked
            try:
                return self._begin(self._ask_for_worker())
            except StartError:
                if self._factory.alive:
                    raise  # even an empty worker does not run; another warm process would not help
        if self._owns_factory:
            self._factory.close()
        self._owns_factory = True
        self._factory = self._make()
        return self._begin(self._ask_for_worker())

    def request(self, header: Mapping[str, Any], tensors: Arrays = NO_ARRAYS, seconds: float | None = None) -> Reply:
        """Send one request and wait for its reply, for `seconds` at most (default: the limit of a call)."""
        channel = self._channel
        if channel is None:
            message = "there is no worker: restart the session first"
            raise DriverError(message)
        if channel.busy:
            message = "the worker is asked something else at the moment"
            raise DriverError(message)
        self._seq += 1
        frame = wire.pieces({**header, "seq": self._seq}, tensors)
        limit = self.limits.call_seconds if seconds is None else seconds
        try:
            reply = Reply(*channel.exchange(frame, limit))
            check_reply(header, self._seq, reply)
        except BaseException as error:  # noqa: BLE001 - Ctrl-C leaves half a frame behind, too
            self._fail(channel, error)
        raise_failure(reply.header)
        return reply

    def begin_apart(self) -> None:
        """Let the program that `apart` asks for begin now, and wait. What hinders it is told when it is needed."""
        with suppress(DriverError):
            begun = Apart(self._factory, self.limits)
            try:
                begun.prepare()
                self._apart = begun
            finally:
                if self._apart is None:
                    begun.close()

    def apart(self, header: Mapping[str, Any], tensors: Arrays, seconds: float) -> Reply:
        """Carry out one request in another worker, which has not loaded the implementation, and end that one."""
        if self._apart is not None:
            begun, self._apart = self._apart, None
            try:
                with closing(begun):
                    return begun.ask(header, tensors, seconds)
            except WorkerLost as lost:  # perhaps long before: another one tells
                if lost.kind == "timeout":
                    raise
        fresh = self._fresh() if self._fresh is not None else None
        try:
            with closing(Apart(fresh or self._factory, self.limits)) as another:
                return another.ask(header, tensors, seconds)
        finally:
            if fresh is not None:
                fresh.close()

    def take_output(self) -> str:
        """Return what the worker printed since the last call, cleaned and shortened."""
        taken = self._left_over
        self._left_over = ""
        if self._channel is not None:
            taken += self._channel.take_output().decode(errors="replace")
        return clean(taken, _SHOWN)

    def close(self) -> None:
        """Kill the worker, and end the process that made it, unless it was given to us."""
        self._discard()
        if self._apart is not None:
            self._apart.close()
            self._apart = None
        if self._owns_factory:
            self._factory.close()

    def _ask_for_worker(self) -> Channel:
        self._meter = None
        channel = Channel(self.limits.output_bytes, self._excess)
        try:
            # a GPU's driver reserves more addresses than there is memory: what is resident is watched all the same
            memory = self.limits.memory_bytes if self.device in {"cpu", "ghost"} else None
            channel.order = self._factory.spawn(channel.wire_fd, channel.output_fd, memory)
        except BaseException:
            channel.close()
            raise
        finally:
            channel.handed_over()
        return channel

    def _begin(self, channel: Channel) -> LoadReply:
        """Wait for the worker's hello, so that our own imports do not count towards its limits; then let it load."""
        self._pending, self._channel, self._seq = None, channel, 0
        self.generation += 1
        try:
            meter = self._met(channel)
        except (Broken, DriverError) as error:
            self._reap(channel, kill=True)
            said = self.take_output().strip()
            message = f"an empty worker does not run within {self.limits}: {error}. It said: {said or 'nothing'}"
            raise StartError(message) from error
        self._meter = meter
        header = self.request(self.load_header(), seconds=self.limits.load_seconds).header
        framework, version, module, file = (str(header.get(key, "")) for key in _FACTS)
        return LoadReply(framework, version, module, file, tuple(clean(n, _NOTE) for n in header["notes"][:_NOTES]))

    def _met(self, channel: Channel) -> Meter:
        """Wait for a worker's hello, and return what measures it from then on."""
        channel.pid = self._factory.spawned(channel.order)
        check_reply({}, 0, Reply(*channel.receive(_HELLO_SECONDS)))
        return Meter(channel.pid, memory_bytes=self.limits.memory_bytes, processes=self.limits.processes)

    def _fail(self, channel: Channel, error: BaseException) -> NoReturn:
        """End a worker that can no longer be reached, and say why."""
        known = error.kind if isinstance(error, Broken) else "protocol"
        status = self._reap(channel, kill=known is not None)
        if isinstance(error, Broken) and known is not None:
            raise WorkerLost(known, error.detail) from None
        if isinstance(error, ProtocolError):
            raise WorkerLost("protocol", str(error)) from error
        if not isinstance(error, Broken):
            raise error
        raise self._exit_reason(status) from None

    def _exit_reason(self, status: int | None) -> WorkerLost:
        excess = self._factory.excess()
        if excess is not None:
            return WorkerLost(*excess)
        if status is not None and os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            return WorkerLost("signal", f"killed by {_signal_name(number)}")
        if status is not None:
            return WorkerLost("exit", f"exited with status {os.WEXITSTATUS(status)} in the middle of a call")
        if not self._factory.alive:
            return WorkerLost("signal", "killed, together with the process that supervises it")
        return WorkerLost("protocol", "closed its wire and went on running")

    def _reap(self, channel: Channel, *, kill: bool) -> int | None:
        self._waited += seconds_waited(channel.pid) if channel.pid is not None else 0.0
        if kill and channel.pid is not None:
            self._factory.kill(channel.pid)
        status = self._factory.reap(channel.pid, killed=kill) if channel.pid is not None else None
        self._left_over += channel.take_output().decode(errors="replace")
        channel.close()
        self._channel = None
        return status

    def _excess(self) -> tuple[LossKind, str] | None:
        return (self._meter.excess() if self._meter is not None else None) or self._factory.excess()

    def _discard(self) -> None:
        """Kill the worker, if there is one, and drop one that was never waited for."""
        if self._channel is not None:
            self._reap(self._channel, kill=True)
        if self._pending is not None:
            self._pending.close()
            self._pending = None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
