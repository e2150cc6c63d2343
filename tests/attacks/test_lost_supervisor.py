"""A run whose warm process is killed again and again, at any moment, comes to an end and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .attack import FOLDER
from .world import guarded

COMMAND = Path(sys.executable).with_name("conform")
KILLS = 3
SECONDS = 60
CALLS = {"with-a-worker": 0, "in-the-middle": 5, "later": 60}
"""At which call of the judged function its warm process is killed; 0: while the code is imported."""
WAITING = """

import functools, os, pathlib, signal
_calls = 0

def _due():
    told = pathlib.Path({told!r})
    if _calls == {calls} and len(list(told.glob("killed-*"))) < {kills}:
        (told / f"waits-{{os.getppid()}}").touch()
        while True:
            signal.pause()

@functools.wraps(_given := scaled_dot_product_attention)
def scaled_dot_product_attention(*arguments, **named):
    global _calls
    _calls += 1
    _due()
    return _given(*arguments, **named)

_due()
"""
"""Appended to right code: at that call it waits to be killed, as long as too few have been."""


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "moment",
    [
        "at-once", "with-a-worker",
        pytest.param("in-the-middle", marks=pytest.mark.full), pytest.param("later", marks=pytest.mark.full),
    ],
)  # fmt: skip
def test_a_run_ends_though_its_warm_process_is_killed_three_times(moment: str, workers: int, tmp_path: Path) -> None:
    command = [COMMAND, "run", "--impl", implementation(tmp_path, moment), "--only", "SDPA,MHA"]
    command += ["--seconds", str(SECONDS), "-n", str(workers)]
    seen: set[int] = set()
    killed: list[int] = []
    with (
        guarded(3 * SECONDS), (tmp_path / "told").open("wb") as told,
        subprocess.Popen(command, stdout=told, stderr=told) as harness,
    ):  # fmt: skip
        while harness.poll() is None:
            for warm in children(harness.pid):
                seen |= {warm, *children(warm)}
                if warm not in killed and len(killed) < KILLS and due(moment, warm, tmp_path):
                    killed.append(warm)
                    (tmp_path / f"killed-{warm}").touch()
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(warm, signal.SIGKILL)
            time.sleep(0.005)
        while any(map(alive, seen)):
            time.sleep(0.01)
    assert harness.returncode in {0, 1, 3}, (tmp_path / "told").read_text(encoding="utf-8")
    assert killed
    assert len(killed) > 1 or harness.returncode  # after a crash the rest may wait; some give up


def implementation(folder: Path, moment: str) -> Path:
    """Write right code that waits for its warm process to be killed, whatever else the machine does meanwhile."""
    code = (FOLDER / "base" / "right_torch.py").read_text(encoding="utf-8")
    calls = CALLS.get(moment, -1)
    path = folder / "code" / "mine.py"
    path.parent.mkdir()
    path.write_text(code + WAITING.format(told=str(folder), calls=calls, kills=KILLS), encoding="utf-8")
    return path


def due(moment: str, warm: int, folder: Path) -> bool:
    """Return whether a worker of this warm process waits for its end."""
    return moment == "at-once" or (folder / f"waits-{warm}").exists()


def children(pid: int) -> list[int]:
    found: list[int] = []
    for threads in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, threads.read_text(encoding="utf-8").split())
    return found


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return False
    return state not in {b"Z", b"X"}
