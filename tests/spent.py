"""What a test computes, in all its processes: what it costs, also where other programs want the processors."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

__all__ = ["Spent", "spent"]


def spent() -> float:
    """Return the seconds that this process, its children and theirs have computed so far.

    Where there is no /proc, children count once they have ended.
    """
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + _living(os.getpid())


def _living(pid: int) -> float:
    """Return the same of what this process has started and not yet waited for, with all that has ended below it."""
    return sum(_of(child) + _living(child) for child in _children(pid))


def _of(pid: int) -> float:
    try:
        told = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:  # it has ended meanwhile
        return 0.0
    return sum(map(int, told[11:15])) / os.sysconf("SC_CLK_TCK")


def _children(pid: int) -> list[int]:
    try:
        files = list(Path(f"/proc/{pid}/task").glob("*/children"))
        return [int(child) for file in files for child in file.read_text(encoding="ascii").split()]
    except OSError:
        return []


class Spent:
    """The plugin that puts processor time in place of what the clock says, in each process that runs tests."""

    def __init__(self, now: Callable[[], float] = spent) -> None:
        self._now = now
        self._before = 0.0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Begin with a test."""
        self._before = self._now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Count what setup, call and teardown took, each."""
        report = yield
        now = self._now()
        report.duration, self._before = max(0.0, now - self._before), now
        return report
