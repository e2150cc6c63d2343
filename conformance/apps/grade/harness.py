"""A process that grades one submission after another, and its handle.

It starts clean, in an empty folder and without the current folder on its path. It always ends together with the process
that started it, and everything that it started ends with it. If it dies, only the current submission is lost.

GradingError
├── HarnessDied      it was killed, or took much longer than the policy allows; a retry may succeed
├── KitFailed        an error in the kit
├── NoRoom           the disk that submissions are unpacked on is full
└── NoIsolation      the isolation that the policy requires is not available
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
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from conformkit.conformance.apps.grade.assess import Finished, GradingTask, assess
from conformkit.conformance.apps.grade.policy import Policy
from conformkit.conformance.driver.client.pace import MOST_PATIENCE
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.spawn.shared import SharedFactory
from conformkit.conformance.driver.spawn.warm import THREAD_VARIABLES, WorkerFactory, worker_factory

__all__ = [
    "EXTRA_SECONDS", "GradingError", "Harness", "HarnessDied", "Harnesses", "KitFailed", "NoIsolation", "NoRoom",
    "main", "serve", "told",
]  # fmt: skip

EXTRA_SECONDS = 180.0
"""Extra time beyond the policy's limits, which the harness enforces itself: to start, unpack, diagnose."""
_IDLE_SECONDS = 300.0
"""A harness ends after this idle time; the machine may be shared."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_OURS = ("CONFORM_IMPORT_PATH",)
"""The grader's environment variables that must not change a grade."""


class GradingError(Exception):
    """A submission has no grade, probably not through its own fault."""


class HarnessDied(GradingError):
    """The process that graded it ended."""


class KitFailed(GradingError):
    """The kit itself failed."""


class NoRoom(GradingError):
    """The disk that submissions are unpacked on is full; the text says which folder is meant."""


class NoIsolation(GradingError):
    """The isolation that the policy requires is not available; `advice` says how to get it."""

    def __init__(self, problem: str, advice: Sequence[str] = ()) -> None:
        super().__init__(problem, advice)
        self.problem, self.advice = problem, tuple(advice)


class Harness:
    """The handle of such a process, which starts when it is needed. For one thread at a time.

    `module` is the program that it runs: one that calls `serve`.
    """

    def __init__(self, scratch: Path, module: str = __name__) -> None:
        self._scratch, self._module = scratch, module
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._used = 0.0
        self._closed = threading.Event()

    def grade(self, task: GradingTask) -> Finished:
        """Return the grade of a submission. Raises GradingError; then the next call uses a new process."""
        limits = task.policy.limits
        kind, answer = self.ask(task, (1 + MOST_PATIENCE) * limits.seconds + limits.load_seconds + EXTRA_SECONDS)
        if kind == "finished":
            found: Finished = answer
            return found
        if kind == "isolation":
            raise NoIsolation(*answer)
        if kind == "full":
            raise NoRoom(answer)
        raise KitFailed(answer)

    def ask(self, task: object, seconds: float) -> tuple[str, Any]:
        """Return the kind of its answer, and the answer. Raises HarnessDied; then the next call uses a new process."""
        try:
            connection = self._connected()
            connection.send(task)
            answer = cast("tuple[str, Any]", connection.recv()) if connection.poll(seconds) else None
        except (EOFError, OSError) as error:
            raise HarnessDied(f"the process that graded it ended ({self._end()})") from error
        except BaseException:
            self.close()
            raise
        self._used = time.monotonic()
        if answer is None:
            self.close()
            raise HarnessDied(f"it did not finish within {seconds:g} s")
        return answer

    def close(self) -> None:
        """Kill it. It may be started again, unless `stop` was called."""
        self._end()

    def stop(self) -> None:
        """Kill it permanently, from any thread: a waiting caller gets HarnessDied."""
        self._closed.set()
        process = self._process
        if process is not None:
            _kill(process)

    def _connected(self) -> Connection:
        if self._closed.is_set():
            raise HarnessDied("the run was stopped")
        idle = time.monotonic() - self._used
        if self._process is not None and (self._process.poll() is not None or idle > _IDLE_SECONDS / 2):
            self._end()  # it has ended, or could end during the request
        if self._connection is None:
            ours, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-P", "-m", self._module, str(theirs.fileno()), str(self._scratch)]
                self._process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own arguments
                    command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, cwd=self._scratch, env=_environment(self._scratch),
                    start_new_session=True,
                )  # fmt: skip
            self._connection = Connection(ours.detach())
            self._used = time.monotonic()
            if self._closed.is_set():  # by another thread, just now
                _kill(self._process)
        return self._connection

    def _end(self) -> str:
        """Kill what is left of it, and return how it ended."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if connection is not None:
            connection.close()
        if process is None:
            return "it was not started"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)  # it is usually about to end; its own exit status says more than our signal
        _kill(process)
        code = process.wait()
        return f"killed by signal {-code}" if code < 0 else f"exit status {code}"


def _environment(scratch: Path) -> dict[str, str]:
    """Return the environment of a harness: one core, like its workers, since one harness runs per core.

    Its temporary files are in the folder for unpacked files too, which is removed whatever happens to it.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OURS}
    return kept | dict.fromkeys(THREAD_VARIABLES, "1") | {"PYTHONSAFEPATH": "1", "TMPDIR": str(scratch)}


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


# --- in the process ---------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Grade incoming tasks until the parent is gone. Arguments: descriptor, folder for unpacked files."""
    trusted = _Trusted()
    serve(arguments, lambda task, scratch: _answer(task, scratch, trusted))


def serve(arguments: list[str], answer: Callable[[Any, Path], tuple[str, Any]]) -> None:
    """Answer incoming tasks until the parent is gone, or has been silent for long. Arguments: descriptor, folder."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a run is stopped from outside
    descriptor, scratch = int(arguments[0]), Path(arguments[1])
    connection = Connection(socket.socket(fileno=descriptor).detach())
    tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, tasks), daemon=True).start()
    with contextlib.suppress(queue.Empty):
        while True:
            connection.send(answer(tasks.get(timeout=_IDLE_SECONDS), scratch))


def _receive(connection: Connection, tasks: queue.SimpleQueue[Any]) -> None:
    """Receive tasks, and end the process as soon as nobody waits for the answer."""
    try:
        while True:
            tasks.put(connection.recv())
    except (EOFError, OSError):
        os._exit(0)


def _answer(task: GradingTask, scratch: Path, trusted: _Trusted) -> tuple[str, Any]:
    try:
        return "finished", assess(task, scratch, trusted.warm)
    except IsolationUnavailable as error:
        return "isolation", (str(error), error.advice)
    except Exception as error:  # noqa: BLE001 - any error costs one submission, and is reported
        if isinstance(error, OSError) and error.errno in _FULL:
            return "full", f"the disk that {scratch.parent} is on, where submissions are unpacked, is full"
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        return "failed", f"{told(error, task.policy)}{place}"


def told(error: Exception, policy: Policy) -> str:
    """Return the text of an error in the kit; for hidden draws only its type, since the text could quote them."""
    return type(error).__name__ if policy.seed is None else f"{type(error).__name__}: {error}"


class _Trusted:
    """The process in which the kit's own code runs, started on first use, and kept."""

    def __init__(self) -> None:
        self._warm: SharedFactory | None = None

    def warm(self) -> WorkerFactory:
        """Return it."""
        if self._warm is None or not self._warm.alive:
            self._warm = SharedFactory(worker_factory(1, torch=True))
        return self._warm


# --- in the parent ----------------------------------------------------------------------------------------------------


class Harnesses:
    """One harness for each grading thread, and their folder for unpacked files."""

    def __init__(self, scratch: Path | None = None) -> None:
        self._scratch = scratch
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._local = threading.local()
        self._all: list[Harness] = []
        self._lock = threading.Lock()

    def grade(self, task: GradingTask) -> Finished:
        """Grade in this thread's harness. Raises GradingError."""
        if not hasattr(self._local, "harness"):
            with self._lock:
                self._local.harness = Harness(self._place())
                self._all.append(self._local.harness)
        found: Finished = self._local.harness.grade(task)
        return found

    def stop(self) -> None:
        """End all of them permanently: waiting callers are released."""
        with self._lock:
            for harness in self._all:
                harness.stop()

    def close(self) -> None:
        """Remove what is left of them, once nobody waits."""
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
    """Return the folder of this Dask worker, which is cleaned up even after a killed worker."""
    distributed = sys.modules.get("distributed")
    try:
        return None if distributed is None else str(distributed.get_worker().local_directory)
    except ValueError:
        return None


if __name__ == "__main__":
    main(sys.argv[1:])
