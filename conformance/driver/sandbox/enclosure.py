"""What is visible in a sandbox, as arguments of bubblewrap: the system and Python, read-only, one submission, no more.

The submission has the same path as outside, so that messages name the same files. Nothing of the kit is visible: the
worker's half of the driver is carried in (worker/carried.py).
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.location import Location

__all__ = ["Enclosure", "belongings", "enclosure"]

HOME = Path("/tmp/home")  # noqa: S108 - the sandbox's own
_TEMPORARY = Path("/tmp")  # noqa: S108
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
_NAME = "nobody"
_HOST = "sandbox"

_TOP = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_SYSTEM = (*_TOP, "libexec", "include", "share")
_ROOTS = ("/proc/kcore", "/proc/sysrq-trigger")
_STORES = ("/nix/store", "/gnu/store")
"""Where these systems keep every program and library, readable for everybody."""
_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "os-release")
_PYTHON = ("bin", "lib", "lib32", "lib64", "include", "share", "pyvenv.cfg")
"""What belongs to Python in its installation folder, which may contain other things."""
_KIT_FOLDERS = ("cli", "conformance", "fixtures", "reference", "spec")
_KEPT_APART = ("/usr", "/bin", "/lib", "/etc", "/dev", "/proc", "/sys", "/tmp")  # noqa: S108


@dataclass(frozen=True, slots=True)
class Enclosure:
    """Arguments for bubblewrap; contents of files to create, by path; the environment inside."""

    arguments: tuple[str, ...]
    files: Mapping[str, str]
    environment: Mapping[str, str]


@dataclass(slots=True)
class _View:
    """The arguments collected so far, and the folders that are already visible."""

    arguments: list[str] = field(default_factory=list)
    shown: list[Path] = field(default_factory=list)
    folders: set[Path] = field(default_factory=set)

    def show(self, source: Path, place: Path | None = None) -> None:
        place = place or source
        if _is_there(source):
            self.make_way(place)
            self.arguments += ["--ro-bind", str(source), str(place)]
            self.shown.append(place)

    def make_way(self, place: Path) -> None:
        """Make the parent folders, passable for everybody: bubblewrap would make them private."""
        for folder in reversed(place.parents[:-1]):
            if folder not in self.folders and not self.shows(folder):
                self.folders.add(folder)
                self.arguments += ["--perms", "0755", "--dir", str(folder)]

    def shows(self, path: Path) -> bool:
        return any(path.is_relative_to(shown) for shown in self.shown)

    def hide(self, folder: Path) -> None:
        self.arguments += ["--tmpfs", str(folder), "--remount-ro", str(folder)]


def enclosure(
    location: Location | None, environment: Mapping[str, str], *, user: int, tmp_bytes: int, copy: Path | None = None
) -> Enclosure:
    """Describe the sandbox of one implementation, or of none. `copy` is shown instead of the original files."""
    view = _View()
    _show_system(view)
    view.arguments += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", *_masks(), "--dev", "/dev"]
    view.arguments += [*_room(_SHARED_MEMORY, tmp_bytes), "--remount-ro", "/dev", *_room(_TEMPORARY, tmp_bytes)]
    view.arguments += ["--perms", "0777", "--dir", str(HOME), "--dir", "/var", "--symlink", "/tmp", "/var/tmp"]  # noqa: S108
    view.show(Path("/sys/devices/system/cpu"))
    _show_python(view)
    own = belongings(location) if location is not None else []
    for path, source in zip(own, [copy, None], strict=False):
        _show_own(view, path, source)
    _hide_kit(view, own)
    view.arguments += ["--remount-ro", "/", "--hostname", _HOST, "--chdir", str(_TEMPORARY)]
    return Enclosure(tuple(view.arguments), _files(user), _inside(environment))


def belongings(location: Location) -> list[Path]:
    """Return what belongs to an implementation: its file, its folder, or the whole package that it is part of.

    Files next to it do not: in a folder of submissions those belong to others.
    Raises: IsolationUnavailable when showing it would expose half of the machine.
    """
    of_kit = _of_kit(location)
    if of_kit or location.path is None:
        return of_kit
    top = location.name.partition(".")[0]
    packaged = location.kind == "module" or "." in location.name or (location.path / "__init__.py").is_file()
    candidates = [root / name for root in location.sys_path[:1] for name in (top, f"{top}.py") if packaged]
    own = next((path for path in candidates if _is_there(path)), location.path)
    for kept in _KEPT_APART:
        if Path(kept).is_relative_to(own):
            raise IsolationUnavailable(
                f"isolation sandbox cannot show {own} alone", "put the implementation into a folder of its own"
            )
    return [own]


def _show_system(view: _View) -> None:
    for name in _TOP:
        path = Path("/", name)
        if path.is_symlink():
            view.arguments += ["--symlink", str(path.readlink()), str(path)]
        else:
            view.show(path)
    for name in _SYSTEM:
        view.show(Path("/usr", name))
        view.show(Path("/usr/local", name))
    for path in sorted(Path("/usr/local").glob("cuda*")):
        view.show(path)
    for store in _STORES:
        view.show(Path(store))
    for name in _ETC:
        view.show(Path("/etc", name))


def _is_there(path: str | Path) -> bool:
    """Whether something exists that we may see; `Path.exists` raises if we may not."""
    return os.path.exists(path)  # noqa: PTH110


def _room(folder: Path, size: int) -> list[str]:
    return ["--perms", "1777", "--size", str(size), "--tmpfs", str(folder)]


def _masks() -> list[str]:
    """Hide what only the machine's root can open, in case we are root."""
    return [word for path in _ROOTS if _is_there(path) for word in ("--ro-bind", os.devnull, path)]


def _show_python(view: _View) -> None:
    for prefix in dict.fromkeys([sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix]):
        for name in _PYTHON:
            _show_new(view, Path(prefix, name))
    places = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    places += [entry for entry in sys.path if Path(entry).name in {"site-packages", "dist-packages"}]
    for place in places:
        _show_new(view, Path(place))


def _show_new(view: _View, path: Path) -> None:
    if not view.shows(path):
        view.show(path)


def _hide_kit(view: _View, own: list[Path]) -> None:
    """Hide the kit where it is visible as part of another folder, except for what was requested."""
    for root in dict.fromkeys(_kit_roots()):
        installed = root.name == "conformkit" and not any(path.is_relative_to(root) for path in own)
        for folder in [root] if installed else [root / name for name in _KIT_FOLDERS]:
            if folder.is_dir() and view.shows(folder) and not any(path.is_relative_to(folder) for path in own):
                view.hide(folder)


def _kit_roots() -> Iterator[Path]:
    """Yield the folders that contain the kit: where it is imported from, and where links lead."""
    here = Path(__file__)
    yield here.parents[3]
    yield here.resolve().parents[3]


def _show_own(view: _View, path: Path, copy: Path | None) -> None:
    if view.shows(path):
        return
    target = path.resolve()
    view.show(copy or target, target)
    if path.is_symlink():
        view.make_way(path)
        view.arguments += ["--symlink", str(target), str(path)]


def _of_kit(location: Location) -> list[Path]:
    """Return what the bundled reference needs if it was requested by name: itself and the law."""
    for root in _kit_roots():
        for name in _KIT_FOLDERS:
            by_path = location.path is not None and location.path.is_relative_to(root / name)
            if by_path or f"{location.name}.".startswith(f"conformkit.{name}."):
                return [root / name, root / "spec"]
    return []


def _files(user: int) -> dict[str, str]:
    return {
        "/etc/passwd": f"{_NAME}:x:{user}:{user}:{_NAME}:{HOME}:/bin/sh\n",
        "/etc/group": f"{_NAME}:x:{user}:\n",
        "/etc/hosts": f"127.0.0.1 localhost {_HOST}\n",
    }


def _inside(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a worker, without variables that point outside."""
    outside = {"TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH"}
    kept = {name: value for name, value in environment.items() if name not in outside}
    path = os.pathsep.join([f"{sys.prefix}/bin", "/usr/local/bin", "/usr/bin", "/bin"])
    own = {"PATH": path, "HOME": str(HOME), "USER": _NAME, "LOGNAME": _NAME}
    if site.ENABLE_USER_SITE:
        own["PYTHONUSERBASE"] = site.getuserbase()
    return {**kept, **own}
