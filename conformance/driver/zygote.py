"""The warm process: imports once what workers need, then forks one whenever the harness asks.

It never imports an implementation. Requests are JSON lines on a socket: `fork` brings two descriptors along, the
worker's wire and the pipe for what it prints; `reap` waits for a worker and tells how it ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from conformkit.conformance.driver import worker

__all__ = ["main"]

_ADOPT_ORPHANS = 36
_GRACE_SECONDS = 1.0


def main(arguments: list[str]) -> None:
    """Serve requests until the harness hangs up. Arguments: descriptor, threads, torch (0 or 1)."""
    descriptor, threads, torch = map(int, arguments)
    control = socket.socket(fileno=descriptor)
    _adopt_orphans()
    worker.prepare_threads(threads, torch=bool(torch))
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # modules are many small objects, and few of them are garbage
    _Zygote(control).serve()


class _Zygote:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._workers: set[int] = set()

    def serve(self) -> None:
        self._reply({"ready": True})
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._control, 4096, 4)
            if not message:
                break
            request = json.loads(message)
            if request["do"] == "fork":
                self._reply({"pid": self._fork(descriptors, request["memory"])})
            else:
                self._reply({"status": self._reap(request["pid"], killed=request["killed"])})
        for pid in self._workers:
            _kill(pid)
        self._kill_orphans()

    def _reply(self, reply: dict[str, Any]) -> None:
        self._control.sendall(json.dumps(reply).encode() + b"\n")

    def _fork(self, descriptors: list[int], memory: int | None) -> int:
        pid = os.fork()
        if pid == 0:
            self._control.close()
            worker.run(descriptors[0], descriptors[1], memory)
        for descriptor in descriptors:
            os.close(descriptor)
        self._workers.add(pid)
        return pid

    def _reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a worker that was killed or is about to end; one that does not is killed, and has no status."""
        status = os.waitpid(pid, 0)[1] if killed else _wait(pid, _GRACE_SECONDS)
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)  # itself if it is still there, and the rest of its group
        if status is None:
            _kill(pid)
            os.waitpid(pid, 0)
        self._workers.discard(pid)
        self._kill_orphans()
        return status

    def _kill_orphans(self) -> None:
        """Kill what workers left behind outside of their group; it became ours when they ended."""
        for _ in range(100):
            orphans = _children() - self._workers
            if not orphans:
                break
            for pid in orphans:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def _wait(pid: int, seconds: float) -> int | None:
    deadline, pause = time.monotonic() + seconds, 0.0002
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(2 * pause, 0.005)


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(pid, signal.SIGKILL)


def _children() -> set[int]:
    me = os.getpid()
    try:
        return set(map(int, Path(f"/proc/{me}/task/{me}/children").read_bytes().split()))
    except (OSError, ValueError):
        return set()


def _adopt_orphans() -> None:
    """On Linux, become the parent of whatever loses its own."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1)


if __name__ == "__main__":
    main(sys.argv[1:])
