"""Isolation `sandbox`: the warm process and its workers in namespaces of their own, made by bubblewrap.

They see one submission only, write to memory only, reach no network and no other process, and end together: when the
harness ends them, or is killed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from queue import SimpleQueue

from conformkit.conformance.driver.errors import LossKind, StartError
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.location import Location
from conformkit.conformance.driver.sandbox import bubblewrap, carrying, seccomp
from conformkit.conformance.driver.sandbox.cgroups import ControlGroup
from conformkit.conformance.driver.sandbox.enclosure import belongings, enclosure
from conformkit.conformance.driver.sandbox.snapshot import readable_copy
from conformkit.conformance.driver.spawn.usage import Meter, amount
from conformkit.conformance.driver.spawn.warm import WarmProcess, scrubbed, start
from conformkit.conformance.driver.worker.confinement import SAME_USER

__all__ = ["SandboxedProcess"]

_INFO_SECONDS = 30.0
_END_SECONDS = 10.0
_CLOSED = -1
"""Instead of a descriptor."""
_ROOM = 1 << 30
"""Memory that a control group may hold besides workers' memory and files: pages of libraries, kernel tables."""
_SPARE = 64
"""Extra processes beyond the workers' limit, so that a worker can be replaced."""
_COUNTED_APART = (5, 14)
"""The first version of Linux that counts a user's processes in each user namespace separately."""


class SandboxedProcess(WarmProcess):
    """A warm process for one implementation, in a sandbox. Workers are known here by their numbers outside.

    `workers` is how many there will be at a time. Raises IsolationUnavailable, StartError.
    """

    def __init__(self, location: Location, limits: Limits, *, torch: bool, workers: int = 1) -> None:
        self._program = bubblewrap.program()
        self._user = bubblewrap.user_inside()
        self._location, self._allowed, self._count = location, limits, workers
        self._filter = seccomp.program()
        self._group: ControlGroup | None = None
        self._first: int | None = None
        """A handle on the first process in the sandbox; all others end with it."""
        self._number: int | None = None
        self._meter: Meter | None = None
        self._handles: list[int] = []
        """Handles on workers, in order of creation; -1 if closed."""
        self._workers: dict[int, tuple[int, int]] = {}
        """By process id outside: the id inside, and the index of the handle."""
        self._ending = ExitStack()
        try:
            super().__init__(limits.threads, torch=torch)
        except BaseException:
            self._ending.close()
            raise

    @property
    def note(self) -> str:
        """What secures the sandbox besides its namespaces; complete once a worker has been made."""
        held = [f"bubblewrap {bubblewrap.version(self._program)}"]
        held += ["a separate user" if self._user != SAME_USER else "a user namespace"]
        held += ["seccomp"] if self._filter else []
        held += [str(self._group)] if self._group is not None else []
        return f"sandbox: {', '.join([*held, *self._ready_reply.get('holds', [])])}"

    def wait_ready(self) -> None:
        """Return once the imports are done."""
        self._meet()
        super().wait_ready()
        if self._meter is None and self._number is not None:
            most = self._allowed.processes + self._count + 1
            self._meter = Meter(self._number, memory_bytes=self._count * self._allowed.memory_bytes, processes=most)

    def spawn(self, wire_fd: int, output_fd: int, memory: int | None) -> int:
        """Ask for a fork, which will be in the control group."""
        self._meet()
        return super().spawn(wire_fd, output_fd, memory)

    def spawned(self, order: int) -> int:
        """Return the number of the fork outside."""
        inside = super().spawned(order)
        try:
            outside = _number_of(self._handles[order])
        except (IndexError, OSError, ValueError) as error:
            raise StartError(self._explain(error)) from error
        self._workers[outside] = inside, order
        return outside

    def reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a fork that is ending."""
        inside, order = self._workers.pop(pid)
        try:
            return super().reap(inside, killed=killed)
        finally:
            self._drop_handle(order)

    def kill(self, pid: int) -> None:
        """Kill a fork. The warm process, which outlives it, kills its group."""
        _kill(self._handles[self._workers[pid][1]])

    def excess(self) -> tuple[LossKind, str] | None:
        """Return the limit that the whole sandbox breaks; it is then already ended."""
        found = self._meter.excess() if self._meter is not None else None
        if found is None and self._group is not None and self._group.kills_for_memory():
            found = "memory", f"used more memory than {amount(self._most_memory())}, files included"
        if found is not None:
            self._end()
        return found

    def close(self) -> None:
        """End the sandbox and everything in it."""
        self._end()
        self._control.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        for order in range(len(self._handles)):
            self._drop_handle(order)
        self._first = _CLOSED
        self._ending.close()

    def _drop_handle(self, order: int) -> None:
        if self._handles[order] != _CLOSED:
            os.close(self._handles[order])
            self._handles[order] = _CLOSED

    def _launch(self, arguments: Sequence[int]) -> subprocess.Popen[bytes]:
        environment = scrubbed(os.environ, self._allowed.threads)
        own = next(iter(belongings(self._location)), None)
        self._copy = self._ending.enter_context(readable_copy(own, self._user))
        number = bubblewrap.number_inside(self._user)
        view = enclosure(self._location, environment, user=number, tmp_bytes=self._allowed.tmp_bytes, copy=self._copy)
        told, tell = os.pipe()
        modules = carrying.packed()
        self._told = self._ending.enter_context(os.fdopen(told, "rb", buffering=0))
        with bubblewrap.handed(view.files, self._filter) as (contents, descriptors), os.fdopen(tell, "wb"):
            wrapper = [self._program, *bubblewrap.namespaces(self._user), "--as-pid-1", "--info-fd", str(tell)]
            wrapper += [*contents, *view.arguments, "--"]
            passed = [arguments[0], tell, modules, *descriptors]
            try:
                return _keep(
                    lambda: start(
                        "zygote", [*arguments, self._user], self._allowed.threads, passed, self._log,
                        wrapper=wrapper, environment=view.environment, starter=["-c", carrying.starter(), str(modules)],
                    )
                )  # fmt: skip
            finally:
                os.close(modules)

    def _bounds(self) -> dict[str, int]:
        bounds = {"file_bytes": self._allowed.file_bytes}
        return {**bounds, "processes": self._allowed.processes} if self._processes_count_apart() else bounds

    def _processes_count_apart(self) -> bool:
        if self._user != SAME_USER:
            return True
        release = tuple(int(part) for part in os.uname().release.split(".")[:2] if part.isdigit())
        return os.geteuid() != 0 and release >= _COUNTED_APART  # root's are not counted at all

    def _take(self, descriptors: Sequence[int]) -> None:
        """Keep the handles that arrive with the workers' process ids."""
        for descriptor in descriptors:
            os.set_inheritable(descriptor, False)
        self._handles += descriptors

    def _meet(self) -> None:
        """Ask bubblewrap for the id of the first process, and put it into a control group."""
        if self._first is not None:
            return
        try:
            self._number = _first_process(self._told.fileno())
            self._first = os.pidfd_open(self._number)
        except (OSError, ValueError, KeyError) as error:
            raise StartError(self._explain(error)) from error
        self._ending.callback(os.close, self._first)
        group = ControlGroup.make(memory_bytes=self._most_memory(), processes=self._allowed.processes + _SPARE)
        if group is None:
            return
        self._ending.callback(group.remove)
        self._group = group if group.add(self._number) else None

    def _most_memory(self) -> int:
        return self._count * self._allowed.memory_bytes + 2 * self._allowed.tmp_bytes + _ROOM

    def _end(self) -> None:
        self._broken = True
        if self._first is not None:
            _kill(self._first)
        else:
            self._process.kill()


def _first_process(descriptor: int) -> int:
    """Read what bubblewrap reports after starting the first process."""
    text = b""
    while not text.rstrip().endswith(b"}"):
        if not select.select([descriptor], [], [], _INFO_SECONDS)[0]:
            message = "bubblewrap does not answer"
            raise TimeoutError(message)
        chunk = os.read(descriptor, 4096)
        if not chunk:
            message = "bubblewrap ended"
            raise ConnectionError(message)
        text += chunk
    return int(json.loads(text)["child-pid"])


def _number_of(handle: int) -> int:
    """Return the process id, as seen here, that a handle refers to."""
    for line in Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii").splitlines():
        name, _, value = line.partition(":")
        if name == "Pid" and int(value) > 0:
            return int(value)
    message = "no process was returned"
    raise ValueError(message)


def _kill(handle: int) -> None:
    with contextlib.suppress(OSError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _keep(make: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Start a process that dies with its parent, from a long-lived thread: to the kernel, that thread is the parent."""
    made: SimpleQueue[subprocess.Popen[bytes] | BaseException] = SimpleQueue()

    def keep() -> None:
        try:
            process = make()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            made.put(error)
            return
        made.put(process)
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

    threading.Thread(target=keep, daemon=True, name="sandbox").start()
    process = made.get()
    if isinstance(process, BaseException):
        raise process
    return process
