"""The warm process: imports once what workers need, then forks one whenever the harness asks.

It never imports an implementation. Requests are JSON lines on a socket: `fork` brings two descriptors along, the
worker's wire and the pipe for what it prints; `reap` waits for a worker and reports its status.

In a sandbox it is the first process, so that nothing inside can stop it. It sends a handle for each fork, since
process ids differ outside.
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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformkit.conformance.driver.allocation import keep_freed_memory
from conformkit.conformance.driver.worker import confinement, late_torch
from conformkit.conformance.driver.worker.main import prepare_threads, run

__all__ = ["main"]

_ADOPT_ORPHANS = 36
_GRACE_SECONDS = 1.0
_ROUNDS = 100
_FIRST = 1
_FEW = 16
"""Forks of one run, if not more. Of a class, each that trains would load the rest of torch by itself."""


def main(arguments: list[str]) -> None:
    """Serve requests until the harness hangs up.

    Arguments: descriptor, threads, torch (0 or 1); in a sandbox, the user to become.
    """
    descriptor, threads, torch, *user = map(int, arguments)
    if user:
        _ignore_signals()
    control = socket.socket(fileno=descriptor)
    control.set_inheritable(False)
    holds = confinement.settle_in(*user) if user else []
    _adopt_orphans()
    keep_freed_memory()
    gc.disable()  # importing torch makes many small objects, few of them garbage
    prepare_threads(threads, torch=bool(torch))
    gc.freeze()  # what garbage there is by now may stay: looking for it takes a tenth of torch's import
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    zygote = _Zygote(control, sandboxed=bool(user))
    zygote.serve(holds)


class _Zygote:
    def __init__(self, control: socket.socket, *, sandboxed: bool) -> None:
        self._control = control
        self._sandboxed = sandboxed
        self._workers: set[int] = set()
        self._forked = 0

    def serve(self, holds: list[str]) -> None:
        self._reply({"ready": True, "holds": holds})
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._control, 4096, 4)
            if not message:
                break
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            request = json.loads(message)
            if request["do"] == "fork":
                self._introduce(self._fork(descriptors, request))
                self._forked += 1
                if self._forked == _FEW:
                    late_torch.complete()
            else:
                self._reply({"status": self._reap(request["pid"], killed=request["killed"])})
        for pid in self._workers:
            _kill(pid)
        self._kill_orphans()

    def _reply(self, reply: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        message = json.dumps(reply).encode() + b"\n"
        if descriptors:
            socket.send_fds(self._control, [message], descriptors)
        else:
            self._control.sendall(message)

    def _introduce(self, pid: int) -> None:
        if not self._sandboxed:
            self._reply({"pid": pid})
            return
        handle = os.pidfd_open(pid)
        self._reply({"pid": pid}, [handle])
        os.close(handle)

    def _fork(self, descriptors: list[int], request: Mapping[str, Any]) -> int:
        pid = os.fork()
        if pid == 0:
            self._control.close()
            if self._sandboxed:
                confinement.become_ordinary()
                confinement.limit(request)
            run(descriptors[0], descriptors[1], request["memory"])
        for descriptor in descriptors:
            os.close(descriptor)
        self._workers.add(pid)
        return pid

    def _reap(self, pid: int, *, killed: bool) -> int | None:
        """Wait for a worker that was killed or is about to end; kill it otherwise, without a status."""
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
        """Kill processes that workers left outside their group; they became our children when the workers ended.

        In a sandbox, processes that multiply faster end every worker.
        """
        for number in range(_ROUNDS):
            orphans = _children() - self._workers
            if not orphans:
                break
            if number == _ROUNDS // 2:
                _kill_all()
            for pid in orphans:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)


def _kill_all() -> None:
    """Kill all processes at once, in a sandbox, where all are ours."""
    if os.getpid() == _FIRST:
        with contextlib.suppress(OSError):
            os.kill(-1, signal.SIGKILL)


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


def _ignore_signals() -> None:
    """Remove Python's own handler of SIGINT, and any other: without one, the first process gets no signal from inside.

    Ignored ones stay ignored, since a broken pipe is an error to handle.
    """
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            if signal.getsignal(number) not in {signal.SIG_DFL, signal.SIG_IGN}:
                signal.signal(number, signal.SIG_DFL)


def _adopt_orphans() -> None:
    """On Linux, adopt orphaned descendants."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1)


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)  # taking torch apart would keep the harness waiting
