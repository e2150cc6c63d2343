"""The harness computes while a worker does, and nothing of that depends on which of them is faster."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from conformkit.conformance.driver.client.beside import beside
from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.errors import ImplementationFailure

from .conftest import Open, Write

SOURCE = """
    from pathlib import Path

    GO = Path(__file__).with_name("go")

    def waits(x):
        GO.with_name("begun").touch()
        while not GO.exists():
            pass
        return x.sum()

    def fails(x):
        raise ValueError("its own")
"""


@pytest.fixture
def session(write: Write, open_session: Open) -> Session:
    return open_session(write(source=SOURCE))


def built(session: Session, name: str) -> int:
    return int(session.request({"op": "build", "path": f"mypkg:{name}"}).header["handle"])


def called(session: Session, handle: int, size: int = 3) -> float:
    header = {"op": "call", "handle": handle, "args": [{"$tensor": "x"}]}
    return float(session.request(header, {"x": np.ones(size)}, 10.0).tensors["out"])


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_work_is_done_while_the_worker_computes(size: int, session: Session, tmp_path: Path) -> None:
    """Would wait until the time limit: each of them waits for the other, also where what is sent is large."""
    handle, end = built(session, "waits"), time.monotonic() + 10.0

    def work() -> None:
        while not (tmp_path / "begun").exists():
            assert time.monotonic() < end
        (tmp_path / "go").touch()

    assert beside(lambda: called(session, handle, size), work) == (size, None)


def test_work_that_raises_does_so_when_the_call_is_over(session: Session, tmp_path: Path) -> None:
    """Would leave a reply unread, which the next request would take for its own."""
    handle = built(session, "waits")
    heard: list[float] = []

    def fails() -> float:
        (tmp_path / "go").touch()
        return 1 / 0

    with pytest.raises(ZeroDivisionError):
        beside(lambda: heard.append(called(session, handle)), fails)
    assert heard == [3.0]
    assert called(session, handle, 5) == 5.0


def test_what_the_call_raises_comes_first(session: Session) -> None:
    handle, made = built(session, "fails"), list[int]()
    with pytest.raises(ImplementationFailure, match="its own"):
        beside(lambda: called(session, handle), lambda: made.append(1))
    assert beside(lambda: 7.0, lambda: made.append(2)) == (7.0, None)
    assert made == [1, 2]


def test_work_that_asks_the_worker_waits_for_its_turn(session: Session, tmp_path: Path) -> None:
    """Would take the reply to another request for its own, and lose the worker."""
    (tmp_path / "go").touch()
    one, other = built(session, "waits"), built(session, "waits")
    assert beside(lambda: called(session, one, 4), lambda: called(session, other, 6)) == (4.0, 6.0)
