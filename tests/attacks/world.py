"""The surroundings of an attacking submission: secrets, a neighbor, warm processes; and leftover processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.client.session import Limits
from conformkit.conformance.driver.spawn.warm import WarmProcess, WorkerFactory
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report
from conformkit.conformance.runner import run

from .attack import FOLDER

__all__ = ["SECRET", "Kept", "World", "guarded", "left_over"]

SECRET = "the-secret-of-the-house"
"""What a spy looks for: in the environment, in the home folder, in the folders next to the submission."""


class Kept:
    """A warm process that outlives the runs that it serves."""

    def __init__(self, *, torch: bool) -> None:
        self._warm: WorkerFactory = WarmProcess(1, torch=torch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._warm, name)

    def close(self) -> None:
        """Stay."""

    def end(self) -> None:
        """Really end it."""
        self._warm.close()


@dataclass
class World:
    """One folder for everything. Its `home` is the home of all started processes: they are recognized by it."""

    folder: Path
    strangers: frozenset[int] = frozenset()
    """Processes that other tests of this module keep, such as warm processes for a session."""
    _kept: dict[bool, Kept] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.folder / "home"

    def furnish(self) -> None:
        """Put secrets where a spy would look, and note the existing processes."""
        parents = {pid: _parent(pid) for pid in _pids()}
        self.strangers = frozenset(pid for pid in parents if _descends(pid, parents, os.getpid(), stop=set()))
        self.home.mkdir(parents=True)
        (self.home / ".netrc").write_text(f"machine grades password {SECRET}\n", encoding="utf-8")

    @contextmanager
    def class_room(self) -> Iterator[Path]:
        """Yield a folder with submissions, one of them honest, a policy and results; remove everything afterwards."""
        room = self.folder / "room"
        (room / "submissions" / "honest").mkdir(parents=True)
        shutil.copy(FOLDER / "base" / "right.py", room / "submissions" / "honest" / "__init__.py")
        (room / "submissions" / "honest" / "notes.txt").write_text(SECRET, encoding="utf-8")
        (room / "policy.toml").write_text(f'hidden_seed = "{SECRET}"\n', encoding="utf-8")
        (room / "results.sqlite").write_text(SECRET, encoding="utf-8")
        try:
            yield room
        finally:
            subprocess.run(["rm", "-rf", str(room)], check=True)  # shutil gives up where folders are too deep

    def warm(self, *, torch: bool) -> Kept:
        """Return a live warm process: an attack may have killed the last one."""
        if torch not in self._kept or not self._kept[torch].alive:
            if torch in self._kept:
                self._kept[torch].end()
            self._kept[torch] = Kept(torch=torch)
        return self._kept[torch]

    def judge(self, impl: Path, *, level: str = "process", torch: bool = False, **options: Any) -> Report:
        """Judge a submission; in a process, by a warm one that is kept."""
        early = HeadStart(warm=self.warm(torch=torch)) if level == "process" else None
        return run(RunRequest(impl=str(impl), isolation=level, **{"limits": Limits(), **options}), early=early)

    def close(self) -> None:
        """End the warm processes."""
        for kept in self._kept.values():
            kept.end()

    def own(self) -> set[int]:
        """Return the processes that are allowed."""
        return {os.getpid(), *(kept._process.pid for kept in self._kept.values())}


def left_over(world: World) -> dict[int, str]:
    """Return the processes of this world, or descendants of this one, that should not exist."""
    parents = {pid: _parent(pid) for pid in _pids()}
    found: dict[int, str] = {}
    expected = world.own() | world.strangers
    for pid in parents.keys() - expected:
        if _lives_at(pid, world.home) or _descends(pid, parents, os.getpid(), stop=expected - {os.getpid()}):
            found[pid] = _read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")[:200]
    return {pid: command for pid, command in found.items() if _parent(pid)}


def _pids() -> set[int]:
    return {int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def _read(pid: int, what: str) -> bytes:
    try:
        return (Path("/proc") / str(pid) / what).read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int:
    """Return the parent of a process; 0 if it has ended, reaped or not."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields and fields[0] not in {b"Z", b"X"} else 0


def _lives_at(pid: int, home: Path) -> bool:
    return f"HOME={home}".encode() in _read(pid, "environ").split(b"\0")


def _descends(pid: int, parents: dict[int, int], ancestor: int, stop: set[int]) -> bool:
    while pid in parents and pid not in stop:
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False


@contextmanager
def guarded(seconds: int) -> Iterator[None]:
    """End what hangs: the harness itself must not hang. This is not a measurement."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"the harness itself did not come to an end within {seconds} s")

    if sys.platform == "win32":
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
