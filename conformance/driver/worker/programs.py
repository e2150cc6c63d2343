"""Run a program of its own beside the worker: a process, a folder and an environment like those of any program."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import importlib.util
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.abc import InspectLoader
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from conformkit.conformance.driver.location import parse, sources
from conformkit.conformance.driver.wire.arrays import Array

__all__ = ["Program"]

_LARGEST = 64 << 20
_NAME = "main.py"
_MOST_FILES, _MOST_BYTES = 5000, 256 << 20
_JUNK = ("__pycache__", ".git", ".venv", "venv", "node_modules")
_OWN = "conformkit"
_LEFT_OUT = ("PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "MALLOC_", "GLIBC_TUNABLES", "OBJC_DISABLE_")
"""Beginnings of variables that a worker has and a user's shell does not; so are all about numbers of threads."""


class Program:
    """A program that has been started, and waits to be told what to do; meanwhile it may import torch."""

    def __init__(self, *, torch: bool = False) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="tmp"))
        try:
            (self._folder / _NAME).write_text(_text("plain_program"), encoding="utf-8")
            self._process = _started(self._folder)
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self._say("torch\n" if torch else "\n")

    def carry_out(
        self, header: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Let it carry out the cases of a request; return the results that it left, and what was raised. It is over."""
        folder = self._folder
        try:
            work = {**header["work"], "without": "" if _needs_ours(header["work"]["location"]) else _OWN}
            work["own_calls"] = _text("own_calls")
            work["location"] = _elsewhere(work["location"], folder / "project")
            (folder / "work.json").write_text(json.dumps(work), encoding="utf-8")
            stored = io.BytesIO()
            np.savez(stored, **arrays)  # type: ignore[arg-type] # the names hold slashes
            (folder / "arrays.npz").write_bytes(stored.getvalue())
            ended = self._ended(header["seconds"])
            return {"ended": ended, "errors": _errors(folder)}, _results(folder)
        finally:
            self.close()

    @property
    def waits(self) -> bool:
        """Whether nothing has ended it meanwhile."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it, and remove its folder."""
        with contextlib.suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with contextlib.suppress(OSError):
            self._told.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _told(self) -> IO[bytes]:
        return cast("IO[bytes]", self._process.stdin)

    def _say(self, words: str) -> None:
        with contextlib.suppress(OSError):  # how it ended is told later
            self._told.write(words.encode())
            self._told.flush()

    def _ended(self, seconds: float) -> str:
        """Let it begin, wait for it, and return how it ended; nothing if it came to its end."""
        with contextlib.suppress(OSError):
            self._told.close()
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"it did not end within {seconds:.3g} s"
        if status < 0:
            return f"it was killed by signal {-status}"
        return f"it exited with status {status}" if status else ""


def _text(module: str) -> str:
    name = f"{__package__}.{module}"
    spec = importlib.util.find_spec(name)
    loader = cast("InspectLoader", spec and spec.loader)  # in a sandbox it is no file
    return loader.get_source(name) or ""


def _needs_ours(location: Mapping[str, Any]) -> bool:
    """Whether a file of the implementation imports the kit whatever happens: it then runs only beside it."""
    top, path = location["name"].partition(".")[0], location["path"]
    if path is None and top != _OWN:
        spec = importlib.util.find_spec(top)
        path = next(iter(spec.submodule_search_locations or []), spec.origin) if spec is not None else None
    if path is None:
        return bool(top == _OWN)
    return any(_imports_ours(node) for file in sources(Path(path)) if (tree := parse(file)) for node in tree.body)


def _imports_ours(node: ast.stmt) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not node.level and (node.module or "").partition(".")[0] == _OWN
    return isinstance(node, ast.Import) and any(alias.name.partition(".")[0] == _OWN for alias in node.names)


def _elsewhere(location: Mapping[str, Any], target: Path) -> Mapping[str, Any]:
    """Copy an implementation with what lies beside it, and return where it is then: its path may tell who runs it.

    What is large, or cannot be copied, stays where it is.
    """
    own, entries = location["path"] and Path(location["path"]), [Path(entry) for entry in location["sys_path"]]
    root = next((entry for entry in entries if own and own.is_relative_to(entry)), None)
    if root is None:
        return location
    if not _is_small(root) or not _copied(root, target):
        return location
    kept = [str(target if entry == root else entry) for entry in entries]
    return {**location, "path": str(target / own.relative_to(root)), "sys_path": kept}


def _is_small(place: Path) -> bool:
    """Whether there are few files, and little in them."""
    room = _MOST_BYTES
    try:
        for number, path in enumerate(place.rglob("*") if place.is_dir() else [place]):
            room -= path.lstat().st_size
            if number > _MOST_FILES or room < 0:
                return False
    except OSError:  # it was removed meanwhile
        return False
    return True


def _copied(place: Path, copy: Path) -> bool:
    try:
        if place.is_dir():
            shutil.copytree(place, copy, symlinks=True, ignore=shutil.ignore_patterns(*_JUNK))
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(place, copy)
    except (OSError, shutil.Error):
        shutil.rmtree(copy, ignore_errors=True)
        return False
    return True


def _started(folder: Path) -> subprocess.Popen[bytes]:
    program = str(folder / _NAME)
    _look_like(f"{sys.executable}\0{program}\0")
    environment = {name: value for name, value in os.environ.items() if not _is_ours(name)}
    return subprocess.Popen(  # noqa: S603 - our own interpreter and program
        [sys.executable, program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _is_ours(variable: str) -> bool:
    return variable.startswith(_LEFT_OUT) or variable.endswith(("_NUM_THREADS", "_MAXIMUM_THREADS"))


def _look_like(arguments: str) -> None:
    """On Linux, show these arguments as those of this process: the program's parent is a program, too."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        own = arguments.encode()[: end - start]
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, own, len(own))


def _results(folder: Path) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for path in sorted(folder.glob("*.npy")):
        with contextlib.suppress(OSError, ValueError, EOFError, MemoryError):
            if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST:
                continue
            array = np.load(path, allow_pickle=False)
            found[path.stem] = array.astype(np.int64 if array.dtype.kind in "iu" else np.float64)
    return found


def _errors(folder: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.txt")):
        with contextlib.suppress(OSError, ValueError):
            if not path.is_symlink() and path.is_file():
                found[path.stem] = path.read_bytes()[:2000].decode(errors="replace")
    return found
