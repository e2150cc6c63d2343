"""The program `bwrap`: whether it works here, and the arguments that separate a sandbox."""

from __future__ import annotations

import functools
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.sandbox.enclosure import enclosure
from conformkit.conformance.driver.worker.confinement import SAME_USER

__all__ = ["handed", "namespaces", "number_inside", "program", "user_inside", "version"]

_PROBE_SECONDS = 20.0
_NOBODY = 65534
_USERS = range(61184, 65520)
"""The range of user ids that distributions reserve for temporary users."""
_INSTEAD = "or run conform with --isolation process in a container or a virtual machine that holds nothing else"
_SETTINGS = {
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": (
        "1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0 lets ordinary users make namespaces",
    ),
    "/proc/sys/kernel/unprivileged_userns_clone": (
        "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1 lets ordinary users make namespaces",
    ),
    "/proc/sys/user/max_user_namespaces": (
        "0", "sudo sysctl -w user.max_user_namespaces=10000 lets ordinary users make namespaces",
    ),
}  # fmt: skip
"""Settings that forbid namespaces: the value that does, and what to do."""


def program() -> str:
    """Return the path of bwrap after trying an empty sandbox with it. Raises IsolationUnavailable."""
    return _found()[0]


def user_inside() -> int:
    """Return the user that a sandbox of root's becomes, a number that nobody else has; others stay who they are."""
    return random.SystemRandom().choice(_USERS) if _found()[1] else SAME_USER


@functools.cache
def _found() -> tuple[str, bool]:
    """Return the path of bwrap, and whether its sandboxes can have users of their own: only root can give them one."""
    if not sys.platform.startswith("linux"):
        raise IsolationUnavailable(
            f"isolation sandbox needs the namespaces of Linux; this is {sys.platform}",
            "run conform in a Linux container or virtual machine",
        )
    places = [place for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if Path(place).is_absolute()]
    found = shutil.which("bwrap", path=os.pathsep.join(places))
    if found is None:
        raise IsolationUnavailable(
            "isolation sandbox needs the program bwrap (bubblewrap), which is not on the PATH",
            "install it: apt-get install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora)",
            _INSTEAD,
        )
    if not _handles():
        raise IsolationUnavailable("isolation sandbox needs handles on processes: Linux 5.3 or later", _INSTEAD)
    mapped = all(_mapped(kind, number) for kind in ("uid", "gid") for number in (_USERS[0], _USERS[-1]))
    if os.geteuid() == 0 and mapped and not _tried(found, _USERS[0]):
        return found, True
    problem = _tried(found, SAME_USER)
    if problem:
        raise IsolationUnavailable(f"isolation sandbox is not available: {problem}", *_advice(), _INSTEAD)
    return found, False


@functools.cache
def version(found: str) -> str:
    """Return its version."""
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout  # noqa: S603
    return said.split()[-1] if said.split() else "of unknown version"


def number_inside(user: int) -> int:
    """Return the id of a user inside the sandbox."""
    return _NOBODY if user == SAME_USER else user


def namespaces(user: int) -> list[str]:
    """Return the arguments that separate a sandbox from everything else, and end it when we end."""
    separate = [f"--unshare-{kind}" for kind in ("ipc", "pid", "net", "uts", "cgroup-try")]
    together = ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if user == SAME_USER:
        return ["--unshare-user", "--uid", str(_NOBODY), "--gid", str(_NOBODY), *separate, *together]
    return [*separate, *together, "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]


@contextmanager
def handed(files: Mapping[str, str], seccomp: bytes | None) -> Iterator[tuple[list[str], list[int]]]:
    """Yield arguments that pass these contents, and the descriptors to hand over."""
    with ExitStack() as ending:
        arguments: list[str] = []
        descriptors: list[int] = []
        for path, content in files.items():
            descriptors.append(_pipe(content.encode(), ending))
            arguments += ["--perms", "0644", "--file", str(descriptors[-1]), path]
        if seccomp is not None:
            descriptors.append(_pipe(seccomp, ending))
            arguments += ["--seccomp", str(descriptors[-1])]
        yield arguments, descriptors


def _pipe(content: bytes, ending: ExitStack) -> int:
    """Return the read end of a pipe that holds this; it is short enough for a pipe's buffer."""
    read, write = os.pipe()
    ending.callback(os.close, read)
    with os.fdopen(write, "wb") as stream:
        stream.write(content)
    return read


def _handles() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _tried(found: str, user: int) -> str:
    """Make an empty sandbox; return the error, if any."""
    view = enclosure(None, {}, user=_NOBODY, tmp_bytes=1 << 20)
    command = [found, *namespaces(user), *view.arguments, "--", shutil.which("true") or sys.executable]
    try:
        done = subprocess.run(  # noqa: S603 - bwrap, and our own arguments
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{found} does not run: {error}"
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return (said[-1] if said else f"bwrap ends with status {done.returncode}") if done.returncode else ""


def _advice() -> list[str]:
    """Return which settings to change, as far as the system shows them; in a container it does not."""
    found = []
    for path, (value, advice) in _SETTINGS.items():
        try:
            if os.geteuid() != 0 and Path(path).read_text(encoding="ascii").strip() == value:
                found.append(advice)
        except OSError:
            continue
    return found or ["the container must be allowed to make namespaces; see docs/security.md"]


def _mapped(kind: str, number: int) -> bool:
    """Whether this user or group exists in the user namespace that we are in."""
    try:
        lines = Path(f"/proc/self/{kind}_map").read_text(encoding="ascii").splitlines()
        return any(first <= number < first + count for first, _, count in (map(int, line.split()) for line in lines))
    except (OSError, ValueError):
        return False
