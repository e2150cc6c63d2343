"""Where submissions are graded: in processes of this machine or of a cluster, by the same function.

Both are executors in the sense of concurrent.futures; what they run passes a task to the harness of its thread, a
separate process on the same machine.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from conformkit.conformance.apps.grade.assess import Finished, GradingTask
from conformkit.conformance.apps.grade.harness import GradingError, Harnesses
from conformkit.conformance.versions import kit_version

__all__ = ["ClusterLost", "ExecutorUnusable", "Pool", "WrongKit", "cluster", "graded", "local"]

_CONNECT_SECONDS = "20s"
_AT_LEAST = 64
"""Number of tasks sent to a cluster, which may grow while it works."""


class ExecutorUnusable(ValueError):
    """The requested executor is not available; the text says why and what to do."""


class ClusterLost(Exception):
    """The cluster is gone, or does not answer; finished grades are stored."""


class WrongKit(GradingError):
    """A machine of the cluster has another version of the kit."""


@dataclass(frozen=True, slots=True)
class Pool:
    """An executor, its function, the number of simultaneous tasks, and the exceptions that mean that it is gone."""

    executor: Executor
    function: Callable[[GradingTask], Finished]
    workers: int
    name: str
    lost: tuple[type[BaseException], ...] = ()

    def submit(self, task: GradingTask) -> Future[Finished]:
        """Submit a task for grading. The future raises GradingError when that fails. Raises ClusterLost."""
        try:
            return self.executor.submit(self.function, task)
        except Exception as error:
            raise ClusterLost(f"{self.name} no longer accepts tasks ({type(error).__name__})") from error


_harnesses: Harnesses | None = None
_lock = threading.Lock()


def graded(task: GradingTask) -> Finished:
    """Grade a submission in a harness next to this process of a cluster. Raises GradingError."""
    global _harnesses  # noqa: PLW0603 - one set per process, for all senders of tasks
    with _lock:
        if _harnesses is None:
            _harnesses = Harnesses()
    return _graded(_harnesses, task)


def _graded(harnesses: Harnesses, task: GradingTask) -> Finished:
    if task.kit != kit_version():
        raise WrongKit(f"a machine of the cluster has conformkit {kit_version()}, this one {task.kit}")
    return harnesses.grade(task)


@contextmanager
def local(workers: int, scratch: Path) -> Iterator[Pool]:
    """A number of processes on this machine, which are ended in any case."""
    harnesses = Harnesses(scratch)
    executor = ThreadPoolExecutor(workers, thread_name_prefix="grade")
    try:
        yield Pool(executor, partial(_graded, harnesses), workers, f"{workers} on this machine")
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
        harnesses.stop()
        executor.shutdown(wait=True)
        harnesses.close()


@contextmanager
def cluster(address: str) -> Iterator[Pool]:
    """The workers of a Dask cluster whose scheduler is at `address`. Raises ExecutorUnusable."""
    distributed = _distributed()
    client = _client(distributed, address)
    try:
        executor = client.get_executor(pure=False)
        lost = (distributed.comm.CommClosedError, CancelledError)
        yield Pool(executor, graded, _threads(client), f"the cluster at {address}", lost)
    finally:
        with suppress(Exception):
            executor.shutdown(wait=False)
        client.close(timeout=5)


def _distributed() -> Any:
    """Return the package, which is an extra. Its log is silenced; problems become sentences."""
    try:
        found = import_module("distributed")
    except ImportError:
        advice = "install it with: pip install 'conformkit[grade]'"
        raise ExecutorUnusable(f"the package distributed is not installed; {advice}") from None
    for name in [name for name in logging.root.manager.loggerDict if name.startswith(("distributed", "tornado"))]:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return found


def _client(distributed: Any, address: str) -> Any:
    try:
        return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ExecutorUnusable(f"no scheduler answers at {address}: {reason}") from None


def _threads(client: Any) -> int:
    return max(_AT_LEAST, sum(map(int, client.nthreads().values())))
