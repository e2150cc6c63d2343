"""The harness's handle on what makes workers: a warm process that forks them, or a fresh process each time.

This module imports the standard library only: a warm process can be on its way before anything else is loaded.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from conformkit.conformance.driver.errors import IsolationUnavailable, LossKind, StartError

__all__ = ["THREAD_VARIABLES", "ColdProcess", "WarmProcess", "WorkerFactory", "scrubbed", "start", "worker_factory"]

_WORKER_HALF = "conformkit.conformance.driver.worker"
START_SECONDS = 300.0
_ANSWER_SECONDS = 15.0
_DESCRIPTORS = 16
_MOST_ANSWERED = 1 << 16
_KEPT = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TMP",
        "TEMP",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "LD_LIBRARY_PATH",
        "DYLD_LIBRARY_PATH",
        "SYSTEMROOT",
        "CUDA_VISIBLE_DEVICES",
    }
)
_KEPT_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(4 << 20), "MALLOC_TRIM_THRESHOLD_": str(32 << 20)}
"""To glibc: free memory stays with the process. Arrays come and go, and fresh pages are filled with zeros first."""
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "BLIS_NUM_THREADS",
)


def scrubbed(environment: Mapping[str, str], threads: int) -> dict[str, str]:
    """Return the environment of a worker: what programs need to run, and the same on every run."""
    kept = {name: value for name, value in environment.items() if name in _KEPT or name.startswith("LC_")}
    fixed = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", **_KEPT_MEMORY}
    if sys.platform == "darwin":
        fixed["OBJC_DISABLE_INITIALIZE_FORK_SAFETY"] = "YES"
    return {**kept, **fixed, **dict.fromkeys(THREAD_VARIABLES, str(threads))}


class WorkerFactory(Protocol):
    """Makes workers and tells how they ended."""

    @property
    def torch(self) -> bool:
        """Whether its workers come with torch imported."""

    @property
    def note(self) -> str:
        """A note about the isolation for readers of the report; complete once a worker has been made."""

    def wait_ready(self) -> None:
        """Return once a worker can be made without delay. Raises StartError."""

    def spawn(self, wire_fd: int, output_fd: int, memory: int | None) -> int:
        """Ask for a worker on these descriptors. Returns the number of the order."""

    def spawned(self, order: int) -> int:
        """Return the process id of the worker that was asked for."""

    def reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a worker that was killed or is ending. Returns its wait status, None when it did not end."""

    def kill(self, pid: int) -> None:
        """Kill a worker and its group."""

    def excess(self) -> tuple[LossKind, str] | None:
        """Return the limit that its workers together exceed, and a sentence about it; they are then ended."""

    @property
    def alive(self) -> bool:
        """Whether it can still make workers."""

    def close(self) -> None:
        """End it, and every worker it made."""


def worker_factory(threads: int, *, torch: bool) -> WorkerFactory:
    """Start whatever makes workers here: a warm process where the system can fork."""
    if os.name != "posix":
        raise IsolationUnavailable(
            f"isolation process needs a POSIX system; this is {sys.platform}",
            "use --isolation none, which judges inside the kit's own process, or run conform in WSL",
        )
    make = WarmProcess if hasattr(os, "fork") else ColdProcess
    return make(threads, torch=torch)


class WarmProcess:
    """A process that has imported what workers need, and forks one in milliseconds."""

    def __init__(self, threads: int, *, torch: bool) -> None:
        self.torch = torch
        self._control, theirs = socket.socketpair()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            with theirs:
                self._process = self._launch([theirs.fileno(), threads, int(torch)])
        except BaseException:
            self._control.close()
            self._log.close()
            raise
        self._buffer = b""
        self._ready = False
        self._ready_reply: dict[str, Any] = {}
        self._broken = False
        self._orders = 0
        self._pids: list[int] = []

    def wait_ready(self) -> None:
        """Return once the imports are done."""
        if not self._ready:
            try:
                self._ready_reply = self._read_reply(START_SECONDS)
            except (OSError, ValueError) as error:
                raise StartError(self._explain(error)) from error
            self._ready = True

    def spawn(self, wire_fd: int, output_fd: int, memory: int | None) -> int:
        """Ask for a fork. Asked before the imports are done, it happens right after them."""
        if self._broken:
            message = "the warm process no longer answers in step with what it is asked"
            raise StartError(message)
        try:
            self._send({"do": "fork", "memory": memory, **self._bounds()}, [wire_fd, output_fd])
        except OSError as error:
            raise StartError(self._explain(error)) from error
        self._orders += 1
        return self._orders - 1

    def spawned(self, order: int) -> int:
        """Return the process id of the fork. Forks are answered in the order of the requests."""
        self.wait_ready()
        try:
            self._collect(order + 1)
        except (OSError, ValueError, KeyError) as error:
            raise StartError(self._explain(error)) from error
        return self._pids[order]

    def reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a fork that is ending. If the warm process itself was killed, its status is unknown."""
        try:
            self._send({"do": "reap", "pid": pid, "killed": killed}, [])
            self._collect(self._orders)
            status = self._read_reply(_ANSWER_SECONDS)["status"]
        except (OSError, ValueError, KeyError):
            self._broken = True
            return None
        return status if type(status) is int else None

    @property
    def note(self) -> str:
        """Return nothing: the report already names the isolation."""
        return ""

    def kill(self, pid: int) -> None:
        """Kill a fork and its group."""
        _kill(pid)

    def excess(self) -> tuple[LossKind, str] | None:
        """Return nothing: each worker is checked separately."""
        return None

    @property
    def alive(self) -> bool:
        """Whether the process runs and answers."""
        return not self._broken and self._process.poll() is None

    def close(self) -> None:
        """Close the connection, which makes it kill its workers and end; kill it if it does not."""
        self._control.close()
        try:
            self._process.wait(0 if self._broken or not self._ready else 3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def _launch(self, arguments: Sequence[int]) -> subprocess.Popen[bytes]:
        """Start the process. Arguments: the descriptor of our connection, the number of threads, and more."""
        return start("zygote", arguments, arguments[1], arguments[:1], self._log)

    def _bounds(self) -> dict[str, int]:
        """Return what a fork is given besides its memory limit."""
        return {}

    def _take(self, descriptors: Sequence[int]) -> None:
        """Refuse descriptors: none are expected."""
        for descriptor in descriptors:
            os.close(descriptor)

    def _send(self, request: dict[str, Any], descriptors: Sequence[int]) -> None:
        message = json.dumps(request).encode()
        if descriptors:
            socket.send_fds(self._control, [message], descriptors)
        else:
            self._control.sendall(message)

    def _collect(self, count: int) -> None:
        while len(self._pids) < count:
            pid = self._read_reply(_ANSWER_SECONDS)["pid"]
            if type(pid) is not int or pid <= 1:
                message = "it does not name a process"
                raise ValueError(message)
            self._pids.append(pid)

    def _read_reply(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            self._control.settimeout(max(0.001, deadline - time.monotonic()))
            chunk, descriptors, _, _ = socket.recv_fds(self._control, 4096, _DESCRIPTORS)
            self._take(descriptors)
            if not chunk:
                message = "it ended"
                raise ConnectionError(message)
            self._buffer += chunk
            if len(self._buffer) > _MOST_ANSWERED:
                message = "its answer is too long"
                raise ConnectionError(message)
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            reply: dict[str, Any] = dict(json.loads(line))
        except (TypeError, RecursionError) as error:
            message = "its answer is not valid"
            raise ValueError(message) from error
        return reply

    def _explain(self, error: Exception) -> str:
        self._broken = True
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        said: list[str] = []
        with contextlib.suppress(ValueError):  # it is closed
            self._log.seek(0)
            said = self._log.read(20_000).decode(errors="replace").strip().splitlines()
        last = f": {said[-1]}" if said else ""
        return f"the warm process does not start ({error}){last}"


class ColdProcess:
    """Starts a fresh process for each worker, on systems without fork."""

    note = ""

    def __init__(self, threads: int, *, torch: bool) -> None:
        self._threads = threads
        self.torch = torch
        self._process: subprocess.Popen[bytes] | None = None

    def wait_ready(self) -> None:
        """Nothing to wait for."""

    def spawn(self, wire_fd: int, output_fd: int, memory: int | None) -> int:
        """Start a process."""
        arguments = [wire_fd, output_fd, self._threads, memory or 0, int(self.torch)]
        self._process = start("main", arguments, self._threads, [wire_fd, output_fd], subprocess.DEVNULL)
        return 0

    def spawned(self, order: int) -> int:
        """Return its id."""
        del order  # one at a time
        if self._process is None:
            message = "no worker was requested"
            raise StartError(message)
        return self._process.pid

    def reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for it, and kill it when it does not end."""
        process, forced = self._process, False
        if process is None:
            return None
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            forced = not killed
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
        code = process.wait()
        self._process = None
        return None if forced else (-code if code < 0 else code << 8)

    def kill(self, pid: int) -> None:
        """Kill it and its group."""
        _kill(pid)

    def excess(self) -> tuple[LossKind, str] | None:
        """Return nothing: each worker is checked separately."""
        return None

    @property
    def alive(self) -> bool:
        """Always true: each worker is a separate process."""
        return True

    def close(self) -> None:
        """Kill the last worker if it is still there."""
        if self._process is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def start(
    module: str,
    arguments: Sequence[int],
    threads: int,
    descriptors: Sequence[int],
    log: Any,
    wrapper: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    starter: Sequence[str] = ("-m",),
) -> subprocess.Popen[bytes]:
    """Start a module of the worker's half, in a wrapper and by a starter if there are some. Raises StartError."""
    command = [*wrapper, sys.executable, "-P", *starter, f"{_WORKER_HALF}.{module}", *map(str, arguments)]
    try:
        return subprocess.Popen(  # noqa: S603 - our own interpreter, our own arguments
            command,
            env=scrubbed(os.environ, threads) if environment is None else environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=list(descriptors),
            start_new_session=True,
        )
    except OSError as error:
        message = f"no process can be started: {error}"
        raise StartError(message) from error


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)
