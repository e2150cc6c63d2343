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


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "moment",
    [
        "at-once", "with-a-worker",
        pytest.param("in-the-middle", marks=pytest.mark.full), pytest.param("later", marks=pytest.mark.full),
    ],
)  # fmt: skip
def test_a_run_ends_though_its_warm_process_is_killed_three_times(moment: str, workers: int, tmp_path: Path) -> None:
    command = [COMMAND, "run", "--impl", FOLDER / "base" / "right_torch.py", "--only", "SDPA,MHA"]
    command += ["--seconds", str(SECONDS), "-n", str(workers)]
    seen: set[int] = set()
    killed: list[int] = []
    with (
        guarded(3 * SECONDS), (tmp_path / "told").open("wb") as told,
        subprocess.Popen(command, stdout=told, stderr=told) as harness,
    ):  # fmt: skip
        while harness.poll() is None:
            for warm in children(harness.pid):
                ours = {warm, *children(warm)}
                seen |= ours
                if warm not in killed and len(killed) < KILLS and due(moment, len(ours) > 1):
                    killed.append(warm)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(warm, signal.SIGKILL)
            time.sleep(0.005)
        while any(map(alive, seen)):
            time.sleep(0.01)
    assert harness.returncode in {0, 1, 3}, (tmp_path / "told").read_text(encoding="utf-8")
    assert len(killed) == KILLS or (killed and harness.returncode == 3)  # it was about to be imported


def due(moment: str, has_worker: bool) -> bool:
    """Wait for the moment, and return whether it has come."""
    if moment == "at-once":
        return True
    if has_worker:
        time.sleep({"with-a-worker": 0.0, "in-the-middle": 0.1, "later": 0.5}[moment])
    return has_worker


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
