"""Packages written by the tests, and workers that run them. One warm process a framework serves the whole folder."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conformkit.conformance.driver.location import Location, locate
from conformkit.conformance.driver.session import InProcess, Limits, Session
from conformkit.conformance.driver.warm import WarmProcess

USUAL = Limits()
Write = Callable[..., Location]
Open = Callable[..., Session]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes files, given by path, and locates `target`."""

    def write_files(target: str = "mypkg.py", files: Mapping[str, str] | None = None, source: str = "") -> Location:
        for name, text in (files or {target: source}).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return locate(str(tmp_path / target))

    return write_files


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmProcess]:
    process = WarmProcess(1, torch=False)
    yield process
    process.close()


@pytest.fixture(scope="session")
def warm_torch() -> Iterator[WarmProcess]:
    process = WarmProcess(1, torch=True)
    yield process
    process.close()


@pytest.fixture
def open_session(request: pytest.FixtureRequest) -> Iterator[Open]:
    """Return a function that starts a session on a location; all are closed afterwards."""
    opened: list[Session] = []

    def open_one(location: Location, *, torch: bool = False, limits: Limits = USUAL, start: bool = True) -> Session:
        process = request.getfixturevalue("warm_torch" if torch else "warm")
        session = Session(location, None, limits, preload_torch=torch, warm=process if process.alive else None)
        opened.append(session)
        if start:
            session.start()
        return session

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture
def inside(write: Write) -> Iterator[Callable[..., InProcess]]:
    """Return a function that loads files without a process: the quick way to test operations."""
    opened: list[InProcess] = []

    def load(source: str, framework: str | None = None) -> InProcess:
        session = InProcess(write(source=source), framework)
        opened.append(session)
        session.start()
        return session

    yield load
    for session in opened:
        session.close()
