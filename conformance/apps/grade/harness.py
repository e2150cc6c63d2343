"""A process that grades one submission after the other, and the handle on it.

It is started clean, in an empty folder and without the current one on its path. It ends when the one that started it
does, however that one ends, and everything that it started ends with it. When it dies itself, only the submission that
it was busy with is lost.

GradingError
├── HarnessDied      it was killed, or took much longer than the policy allows; another one may do better
├── KitFailed        it met an error of the kit's own
├── NoRoom           the disk that submissions are unpacked on is full
└── NoIsolation      the isolation that the policy asks for is not to be had there
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from conformkit.conformance.apps.grade.assess import Finished, Task, assess
from conformkit.conformance.apps.grade.policy import Policy
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.spawn.shared import SharedNursery
from conformkit.conformance.driver.spawn.warm import THREAD_VARIABLES, Nursery, nursery

__all__ = ["GradingError", "Harness", "HarnessDied", "Harnesses", "KitFailed", "NoIsolation", "NoRoom", "main", "told"]

_EXTRA_SECONDS = 180.0
"""What a harness may take beyond the limits of the policy, which it keeps itself: to start, unpack, diagnose."""
_IDLE_SECONDS = 300.0
"""A harness that has had nothing to do for so long ends; the machine may be somebody else's, too."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OURS = ("CONFORM_IMPORT_PATH",)
"""Variables of the one who grades that must not change a grade."""


class GradingError(Exception):
    """A submission has no grade, through no fault of its own as far as anybody knows."""


class HarnessDied(GradingError):
    """The process that graded it ended."""


class KitFailed(GradingError):
    """The kit itself failed."""


class NoRoom(GradingError):
    """The disk that submissions are unpacked on is full; the text says which folder is meant."""


class NoIsolation(GradingError):
    """The isolation that the policy asks for is not to be had; `advice` tells how to get it."""

    def __init__(self, problem: str, advice: Sequence[str] = ()) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, tuple(advice)


class Harness:
    """The handle on such a process, which starts when it is needed. For one thread at a time."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._used = 0.0
        self._closed = threading.Event()

    def grade(self, task: Task) -> Finished:
        """Return what it makes of a submission. Raises GradingError; the next call has a new process then."""
        limits = task.policy.limits
        seconds = limits.seconds + limits.load_seconds + _EXTRA_SECONDS
        try:
            connection = self._connected()
            connection.send(task)
            in_time = connection.poll(seconds)
            kind, answer = cast("tuple[str, Any]", connection.recv() if in_time else ("late", ""))
        except (EOFError, OSError) as error:
            raise HarnessDied(f"the process that graded it ended ({self._end()})") from error
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        if kind == "late":
            self.close()
            raise HarnessDied(f"it was not done after {seconds:g} s")
        if kind == "finished":
            found: Finished = answer
            return found
        if kind == "isolation":
            raise NoIsolation(*answer)
        if kind == "full":
            raise NoRoom(answer)
        raise KitFailed(answer)

    def close(self) -> None:
        """Kill it. It may be started again, unless `stop` was called."""
        self._end()

    def stop(self) -> None:
        """Kill it for good, from whichever thread: whoever waits for it gets HarnessDied."""
        self._closed.set()
        process = self._process
        if process is not None:
            _kill(process)

    def _connected(self) -> Connection:
        if self._closed.is_set():
            raise HarnessDied("the run was stopped")
        idle = time.monotonic() - self._used
        if self._process is not None and (self._process.poll() is not None or idle > _IDLE_SECONDS / 2):
            self._end()  # it has ended, or could do so while it is asked
        if self._connection is None:
            ours, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno()), str(self._scratch)]
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own arguments
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, cwd=self._scratch, env=_environment(), start_new_session=True,
                )  # fmt: skip
            self._connection = Connection(ours.detach())
            self._used = time.monotonic()
            if self._closed.is_set():  # by another thread, just now
                _kill(self._process)
        return self._connection

    def _end(self) -> str:
        """Kill what is left of it, and say how it ended."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None:
            return "it was not started"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)  # it is about to end, as a rule; what killed it tells more than our own signal
        _kill(process)
        code = process.wait()
        return f"killed by signal {-code}" if code < 0 else f"exit status {code}"


def _environment() -> dict[str, str]:
    """Return what a harness gets: one core, as its workers do, since as many of them run as there are cores."""
    kept = {name: value for name, value in os.environ.items() if name not in _OURS}
    return kept | dict.fromkeys(THREAD_VARIABLES, "1") | {"PYTHONSAFEPATH": "1"}


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


# --- in the process ---------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Grade what comes in until nobody is there any more. Arguments: descriptor, folder for what is unpacked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever stops a run stops it from outside
    descriptor, scratch = int(arguments[0]), Path(arguments[1])
    connection = Connection(socket.socket(fileno=descriptor).detach())
    tasks: queue.SimpleQueue[Task] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    trusted = _Trusted()
    with contextlib.suppress(queue.Empty):
        while True:
            connection.send(_answer(tasks.get(timeout=_IDLE_SECONDS), scratch, trusted))


def _receive(connection: Connection, tasks: queue.SimpleQueue[Task]) -> None:
    """Take in tasks, and end the process as soon as nobody waits for the answer."""
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)


def _answer(task: Task, scratch: Path, trusted: _Trusted) -> tuple[str, Any]:
    try:
        return "finished", assess(task, scratch, trusted.warm)
    except IsolationUnavailable as error:
        return "isolation", (str(error), error.advice)
    except Exception as error:  # noqa: BLE001 - whatever it is, it costs one submission, and is told
        if isinstance(error, OSError) and error.errno in _FULL:
            return "full", f"the disk that {scratch.parent} is on, where submissions are unpacked, is full"
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        return "failed", f"{told(error, task.policy)}{place}"


def told(error: Exception, policy: Policy) -> str:
    """Return what may be said of an error of the kit's: on hidden draws its kind alone, its text could quote them."""
    return type(error).__name__ if policy.seed is None else f"{type(error).__name__}: {error}"


class _Trusted:
    """The process in which the kit's own code runs, started when it is first needed, and kept."""

    def __init__(self) -> None:
        self._warm: SharedNursery | None = None

    def warm(self) -> Nursery:
        """Return it."""
        if self._warm is None or not self._warm.alive:
            self._warm = SharedNursery(nursery(1, torch=True))
        return self._warm


# --- in the one that starts it ----------------------------------------------------------------------------------------


class Harnesses:
    """One harness for each thread that grades, and the folder that they unpack into."""

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._local = threading.local()
        self._all: list[Harness] = []
        self._lock = threading.Lock()

    def grade(self, task: Task) -> Finished:
        """Grade in this thread's harness. Raises GradingError."""
        if not hasattr(self._local, "harness"):
            with self._lock:
                self._local.harness = Harness(self._place())
                self._all.append(self._local.harness)
        found: Finished = self._local.harness.grade(task)
        return found

    def stop(self) -> None:
        """End all of them, for good: whoever waits for one is let go."""
        with self._lock:
            for harness in self._all:
                harness.stop()

    def close(self) -> None:
        """Clear away what is left of them, when nobody waits any more."""
        self.stop()
        with self._lock:
            for harness in self._all:
                harness.close()
            if self._own is not None:
                self._own.cleanup()
                self._own = None

    def _place(self) -> Path:
        if self._scratch is not None:
            return self._scratch
        if self._own is None:
            self._own = tempfile.TemporaryDirectory(prefix="conform-grade-", dir=_folder_of_the_cluster())
        return Path(self._own.name)


def _folder_of_the_cluster() -> str | None:
    """Return the folder of the Dask worker that this is, which is swept even after a worker that was killed."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else str(distributed.get_worker().local_directory)
    except ValueError:
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
