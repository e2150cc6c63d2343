"""Where submissions are graded: in processes of this machine, or of a cluster; the same function either way.

Both are executors in the sense of concurrent.futures, and what they run hands a task to the harness of its thread, a
process of its own on whichever machine.
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

from conformkit.conformance.apps.grade.assess import Finished, Task
from conformkit.conformance.apps.grade.harness import GradingError, Harnesses
from conformkit.conformance.versions import kit_version

__all__ = ["ClusterLost", "ExecutorUnusable", "Pool", "WrongKit", "cluster", "graded", "local"]

_CONNECT_SECONDS = "20s"
_AT_LEAST = 64
"""So many tasks are on their way to a cluster, which may grow while it works."""


class ExecutorUnusable(ValueError):
    """The executor asked for is not to be had; the text says why and what to do."""


class ClusterLost(Exception):
    """The cluster is gone, or does not answer; what is graded is stored."""


class WrongKit(GradingError):
    """A machine of the cluster has another version of the kit."""


@dataclass(frozen=True, slots=True)
class Pool:
    """An executor, what it runs, on how many tasks at once, and the exceptions that tell that it is gone."""

    executor: Executor
    function: Callable[[Task], Finished]
    workers: int
    name: str
    lost: tuple[type[BaseException], ...] = ()

    def submit(self, task: Task) -> Future[Finished]:
        """Let a task be graded. The future raises GradingError when that fails. Raises ClusterLost."""
        try:
            return self.executor.submit(self.function, task)
        except Exception as error:
            raise ClusterLost(f"{self.name} takes nothing any more ({type(error).__name__})") from error


_harnesses: Harnesses | None = None
_lock = threading.Lock()


def graded(task: Task) -> Finished:
    """Grade a submission in a harness beside this process of a cluster. Raises GradingError."""
    global _harnesses  # noqa: PLW0603 - one set for the process, whoever sends the task
    with _lock:
        if _harnesses is None:
            _harnesses = Harnesses()
    return _graded(_harnesses, task)


def _graded(harnesses: Harnesses, task: Task) -> Finished:
    if task.kit != kit_version():
        raise WrongKit(f"a machine of the cluster has conformkit {kit_version()}, this one {task.kit}")
    return harnesses.grade(task)


@contextmanager
def local(workers: int, scratch: Path) -> Iterator[Pool]:
    """So many processes on this machine. At the end, however it comes, they are gone."""
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
    """Return the package, which is an extra. What it would log is told as a sentence, or is its own affair."""
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
