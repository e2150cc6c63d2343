"""What the processes in a sandbox give up themselves once they are inside: privileges and resources."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping

from conformkit.conformance.driver.worker.landlock import give_up_writing

__all__ = ["SAME_USER", "become_ordinary", "limit", "settle_in"]

SAME_USER = 0
"""Instead of a user id: keep the current user."""
_SET_DUMPABLE = 4
_OPEN_FILES = 1024


def settle_in(user: int) -> list[str]:
    """Become that user permanently, out of reach of later processes; return what the kernel adds to the sandbox."""
    os.environ.pop("PWD", None)  # bubblewrap sets it
    if user != SAME_USER:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)
    version = give_up_writing(but_in=["/tmp", "/dev/shm"], devices=["/dev"])  # noqa: S108 - the sandbox's own
    return [f"landlock {version}"] if version else []


def become_ordinary() -> None:
    """Let a worker inspect itself, as every process can; its parent must stay closed to it."""
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 1)


def limit(bounds: Mapping[str, int]) -> None:
    """Limit this process and its children. Without a limit on processes, a control group counts them."""
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
