"""`pytest --record FILE`: which functions of the kit each test runs, in all processes, and how long the test takes."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from . import tracing

HOOK = Path(sysconfig.get_paths()["purelib"]) / "conformkit_recording.pth"
FOLDER = Path(tempfile.gettempdir()) / "conformkit-recording"
"""Holds a folder for each process that runs tests."""
_START = (
    "import importlib.util as u; s = u.spec_from_file_location('conformkit_tracing', {file!r}); "
    "m = u.module_from_spec(s); s.loader.exec_module(m); m.follow({folder!r})\n"
)


class Recorder:
    """Writes a line of JSON for each test: its id, its seconds, what ran."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._own = FOLDER / str(os.getpid())
        shutil.rmtree(self._own, ignore_errors=True)
        self._own.mkdir(parents=True, mode=0o777)
        self._number = 0
        HOOK.write_text(_START.format(file=tracing.__file__, folder=str(FOLDER)), encoding="utf-8")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Record one test."""
        self._number += 1
        (self._own / "current").write_text(str(self._number), encoding="utf-8")
        tracing.begin()
        began = time.perf_counter()
        try:
            return (yield)
        finally:
            seconds = time.perf_counter() - began
            ran = tracing.end() | self._theirs()
            line = json.dumps({"test": item.nodeid, "seconds": round(seconds, 3), "ran": sorted(ran)})
            with self._out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")

    def _theirs(self) -> set[str]:
        file = self._own / f"{self._number}.ran"
        if not file.exists():
            return set()
        return set(file.read_text(encoding="utf-8", errors="replace").splitlines())

    def pytest_unconfigure(self) -> None:
        """Leave the environment as it was."""
        shutil.rmtree(self._own, ignore_errors=True)
        if not any(FOLDER.iterdir()):
            HOOK.unlink(missing_ok=True)
