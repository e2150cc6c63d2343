"""What the processes in a sandbox give up themselves, once it holds them: rights, and more than their share."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping

from conformkit.conformance.driver.worker.landlock import give_up_writing

__all__ = ["SAME_USER", "become_ordinary", "limit", "settle_in"]

SAME_USER = 0
"""Instead of a user's number: stay who you are."""
_SET_DUMPABLE = 4
_OPEN_FILES = 1024


def settle_in(user: int) -> list[str]:
    """Become that user for good, out of reach of what is started later; return what the kernel adds to the sandbox."""
    for name in ("PYTHONPATH", "PWD"):  # the one has found the driver, the other is bubblewrap's
        os.environ.pop(name, None)
    if user != SAME_USER:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)
    version = give_up_writing(but_in=["/tmp", "/dev/shm"], devices=["/dev"])  # noqa: S108 - the sandbox's own
    return [f"landlock {version}"] if version else []


def become_ordinary() -> None:
    """Let a worker look at itself, as every process can: its parent must not be looked at."""
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1)


def limit(bounds: Mapping[str, int]) -> None:
    """Limit this process and what it starts. Without a number for processes, others count them."""
    import resource  # noqa: PLC0415 - there is none on Windows

    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_MSGQUEUE: 0, resource.RLIMIT_NOFILE: _OPEN_FILES}
    wanted[resource.RLIMIT_FSIZE] = bounds["file_bytes"]
    if "processes" in bounds:
        wanted[resource.RLIMIT_NPROC] = bounds["processes"]
    for kind, asked in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = asked if hard == resource.RLIM_INFINITY else min(asked, hard)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(kind, (most, most))
