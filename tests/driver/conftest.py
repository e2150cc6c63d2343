"""Packages written by the tests, and workers that run them. One warm process per framework serves the whole folder."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformkit.conformance.driver.client.session import InProcess, Limits, Session
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.location import Location, locate
from conformkit.conformance.driver.sandbox import bubblewrap
from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess
from conformkit.conformance.driver.spawn.warm import WarmProcess
from tests.needs import needed

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


EVALUATE = """
    import json, os
    def evaluate(code):
        scope = {}
        exec(code, scope)
        print(json.dumps(scope.get("found")))
        return 1.0
"""


@pytest.fixture(scope="session")
def bwrap() -> str:
    """Return the path of bubblewrap, which CI must have."""
    try:
        return bubblewrap.program()
    except IsolationUnavailable as error:
        if needed("SANDBOX"):
            raise
        return pytest.skip(str(error))


@pytest.fixture
def jail(bwrap: str, write: Write) -> Iterator[Open]:
    """Return a function that starts a session in a sandbox; all are closed afterwards."""
    opened: list[Session] = []

    def open_one(
        location: Location | None = None, *, limits: Limits = USUAL, torch: bool = False, start: bool = True
    ) -> Session:
        place = location or write(source=EVALUATE)
        session = Session(place, None, limits, make=lambda: SandboxedProcess(place, limits, torch=torch))
        opened.append(session)
        if start:
            session.start()
        return session

    yield open_one
    for session in opened:
        session.close()


@pytest.fixture(scope="module")
def cell(bwrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Return a session in a sandbox for tests that only read."""
    folder = tmp_path_factory.mktemp("cell") / "submissions" / "own"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(textwrap.dedent(EVALUATE))
    (folder.parent / "neighbor").mkdir()
    (folder.parent / "neighbor" / "__init__.py").write_text("SECRET = 1")
    (folder.parent.parent / "policy.toml").write_text("seed = 1")
    location = locate(str(folder))
    with Session(location, make=lambda: SandboxedProcess(location, USUAL, torch=False)) as session:
        session.start()
        yield session


@pytest.fixture(scope="session")
def evaluate() -> Callable[..., Any]:
    """Return a function that runs code in a worker and returns what it assigned to `found`."""

    def run(session: Session, code: str, seconds: float | None = None) -> Any:
        handle = session.request({"op": "build", "path": f"{session.location.name}:evaluate"}).header["handle"]
        session.take_output()
        session.request({"op": "call", "handle": handle, "args": [textwrap.dedent(code)]}, seconds=seconds)
        return json.loads(session.take_output().splitlines()[-1])

    return run


@pytest.fixture(autouse=True)
def _torch_is_imported_once():
    """Not here: these tests are about the processes that a run starts."""
