"""A control group of our own, where this process may make one: limits that count a whole sandbox at once."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ControlGroup"]

_PREFIX = "conformkit-"
_NUMBERS = itertools.count()
_V2 = ("memory", "pids")
_SETTINGS = {
    "memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    "pids": ("pids.max",),
    "unified": ("memory.max", "memory.swap.max", "pids.max"),
}


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """Folders in the hierarchies of control groups, by controller; `unified` holds all of them."""

    folders: Mapping[str, Path]

    @classmethod
    def make(cls, *, memory_bytes: int, processes: int) -> ControlGroup | None:
        """Make a group next to or below our own; None if that is not allowed."""
        found: dict[str, Path] = {}
        for controller, parent in _parents().items():
            _sweep(parent)
            folder = parent / f"{_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
            try:
                folder.mkdir()
            except OSError:
                continue
            if _limited(folder, controller, memory_bytes, processes):
                found[controller] = folder
            else:
                _remove(folder)
        return cls(found) if found else None

    def add(self, pid: int) -> bool:
        """Add a process; its later children belong to the group too."""
        try:
            for folder in self.folders.values():
                (folder / "cgroup.procs").write_text(str(pid), encoding="ascii")
        except OSError:
            return False
        return True

    def kills_for_memory(self) -> int:
        """Return how many of its processes the kernel killed for lack of memory."""
        for controller, name in (("unified", "memory.events"), ("memory", "memory.oom_control")):
            with contextlib.suppress(OSError, KeyError, ValueError):
                words = (self.folders[controller] / name).read_text(encoding="ascii").split()
                return int(dict(zip(words[::2], words[1::2], strict=False)).get("oom_kill", "0"))
        return 0

    def remove(self) -> None:
        """Remove it; its processes have ended."""
        for folder in self.folders.values():
            _remove(folder)

    def __str__(self) -> str:
        if "unified" in self.folders:
            return "cgroup v2 (memory, pids)"
        return f"cgroup v1 ({', '.join(sorted(self.folders))})"


def _limited(folder: Path, controller: str, memory_bytes: int, processes: int) -> bool:
    """Set the limits; without the first one the group is useless. Swap is counted where the kernel counts it."""
    for number, name in enumerate(_SETTINGS[controller]):
        value = {"pids.max": processes, "memory.swap.max": 0}.get(name, memory_bytes)
        try:
            (folder / name).write_text(str(value), encoding="ascii")
        except OSError:
            if number == 0 or name == "pids.max":
                return False
    return True


def _parents() -> dict[str, Path]:
    """Return the folders where a group with limits can be made, by controller."""
    own = _own()
    mounts = list(_mounts())
    found: dict[str, Path] = {}
    for kind, root, place, options in mounts:
        if kind == "cgroup":
            for controller in {"memory", "pids"} & options & set(own):
                found.setdefault(controller, _beneath(place, root, own[controller]))
    found = {controller: folder for controller, folder in found.items() if os.access(folder, os.W_OK)}
    if found:
        return found
    for kind, root, place, _ in mounts:
        folder = _enabled(_beneath(place, root, own.get("", "/")), place) if kind == "cgroup2" else None
        if folder is not None:
            return {"unified": folder}
    return {}


def _enabled(folder: Path, top: Path) -> Path | None:
    """Return the nearest group, from our own upward, whose children have both controllers and may be made by us."""
    while folder.is_relative_to(top):
        with contextlib.suppress(OSError):
            enabled = (folder / "cgroup.subtree_control").read_text(encoding="ascii").split()
            writable = os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)
            if writable and set(_V2) <= set(enabled):
                return folder
        folder = folder.parent
    return None


def _own() -> dict[str, str]:
    """Return this process's place in each hierarchy, by controller; of the unified one by the empty word."""
    found: dict[str, str] = {}
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            found |= dict.fromkeys(controllers.split(","), path)
    return found


def _mounts() -> Iterator[tuple[str, str, Path, set[str]]]:
    """Yield the hierarchies: kind, what of it is mounted, where, and its options."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
            before, _, after = line.partition(" - ")
            kind, _, options = after.split(" ", 2)
            if kind in {"cgroup", "cgroup2"}:
                root, place = before.split()[3:5]
                yield kind, root, Path(place), set(options.split(","))


def _beneath(place: Path, root: str, path: str) -> Path:
    inside = os.path.relpath(path, root)
    return place if inside == "." or inside.startswith("..") else place / inside


def _sweep(parent: Path) -> None:
    """Remove groups of killed harnesses: those that name a process that no longer exists."""
    with contextlib.suppress(OSError):
        for folder in parent.glob(f"{_PREFIX}*"):
            owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                _remove(folder)


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()
