"""What a process and its descendants use, read from outside."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from conformkit.conformance.driver.errors import LossKind

__all__ = ["Meter", "amount", "children", "family", "has_ended"]

_MAX_PROCESSES = 10_000
"""No more processes than this are examined: it is too many in any case."""
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Meter:
    """Compares what a worker uses, beyond its usage at hello, with what it may use."""

    def __init__(self, pid: int, *, memory_bytes: int, processes: int) -> None:
        self._pid, self._memory_bytes, self._processes = pid, memory_bytes, processes
        self._base = _resident([pid])

    def excess(self) -> tuple[LossKind, str] | None:
        """Return the limit that is broken, and a sentence about it."""
        pids = family(self._pid)
        if len(pids) > self._processes:
            return "processes", f"started more than {self._processes} processes"
        if self._over(_resident(pids)) and (len(pids) == 1 or self._over(_proportional(pids))):
            return "memory", f"used more than {amount(self._memory_bytes)} of memory"
        return None

    def _over(self, used: int) -> bool:
        return used - self._base > self._memory_bytes


def family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found = [pid]
    for parent in found:  # grows during the loop
        if len(found) < _MAX_PROCESSES:
            found += children(parent)
    return found


def children(pid: int) -> list[int]:
    """Return the processes that the threads of a process started."""
    found: list[int] = []
    for task in _tasks(pid):
        try:
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split())
        except (OSError, ValueError):
            continue
    return found


def has_ended(pid: int) -> bool:
    """Whether a process has ended and waits for its parent to collect its status."""
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state in {b"Z", b"X"}


def amount(size: int) -> str:
    """Write a number of bytes in a readable unit."""
    return f"{size / (1 << 30):.3g} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.3g} MiB"


def _tasks(pid: int) -> Sequence[str]:
    try:
        return [path.name for path in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return ()


def _resident(pids: Sequence[int]) -> int:
    return sum(_page_count(pid) for pid in pids) * _PAGE


def _page_count(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _proportional(pids: Sequence[int]) -> int:
    """Count shared memory once. It walks through all pages, so it is used only when in doubt."""
    total = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
            total += sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))
        except (OSError, ValueError, IndexError):
            total += _resident([pid])
    return total
