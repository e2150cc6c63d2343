"""Verdicts for other programs: one JSON object a line comes in, one a line goes out.

    {"id": 1, "code": "def …"}      →  {"schema": …, "id": 1, "outcome": "fails", "score": 0.77, "failures": […], …}
    {"id": 2, "files": {"a.py": …}} or {"id": 3, "path": "mypkg"}, with profile, only, without, level, seed, strict,
                                       stop and seconds as `conform run` has them
    {"cancel": 2}                   →  {"schema": …, "id": 2, "outcome": "cancelled"}, unless it has begun

What is no request gets {"schema": …, "id": …, "line": 7, "error": "…"}, and the next line is read.
"""

from __future__ import annotations

import json
import os
import socketserver
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from functools import partial
from io import BufferedIOBase
from pathlib import Path
from typing import Any, BinaryIO

from conformkit.conformance.api.candidate import Candidate
from conformkit.conformance.api.judging import JudgePool
from conformkit.conformance.api.judgment import Judgment

__all__ = ["SCHEMA", "answer_lines", "lines_of", "listen", "request_of"]

SCHEMA = "conformkit.serve/1"
"""Name and version of the format. New fields keep the number; changing or removing a field raises it."""
_WAITING = 100
"""Requests of one caller that are not answered yet; no more lines are read until one is."""
_LONGEST = 16_000_000
_CODE = ("code", "files", "path")
_OPTIONS = ("level", "only", "profile", "seconds", "seed", "stop", "strict", "without")
_TEXTS = frozenset({"code", "path", "level", "only", "profile", "without"})
_FLAGS = frozenset({"stop", "strict"})


class _RequestError(ValueError):
    """A line is no request; the text says why."""


def answer_lines(lines: Iterable[str], write: Callable[[str], None], judges: JudgePool) -> None:
    """Answer each line as its verdict comes, and return once all are answered. `write` is called from any thread."""
    caller = _Caller(write, judges)
    try:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                caller.take(number, line)
    finally:
        caller.finish()


class _Caller:
    """The requests of one caller that are not answered yet. If it no longer reads, what has not begun is cancelled."""

    def __init__(self, write: Callable[[str], None], judges: JudgePool) -> None:
        self._write, self._judges = write, judges
        self._free = threading.BoundedSemaphore(_WAITING)
        self._lock = threading.Condition()
        self._waiting: dict[int, tuple[Any, Future[Judgment]]] = {}
        self._gone = False

    def take(self, number: int, line: str) -> None:
        """Begin what a line asks for, or say why it can't be."""
        told: Mapping[str, Any] = {}
        try:
            told = _object(line)
            if "cancel" in told:
                self._cancel(told["cancel"])
                return
            code, options = request_of(told)
            self._free.acquire()
            try:
                future = self._judges.submit(code, **options)
            except BaseException:
                self._free.release()
                raise
        except (ValueError, TypeError) as error:
            self._tell({"id": told.get("id"), "line": number, "error": f"line {number}: {error}"})
            return
        with self._lock:
            self._waiting[number] = told.get("id"), future
        future.add_done_callback(partial(self._done, number))

    def finish(self) -> None:
        """Wait until all are answered."""
        with self._lock:
            self._lock.wait_for(lambda: not self._waiting)

    def _cancel(self, name: object) -> None:
        with self._lock:
            meant = [future for known, future in self._waiting.values() if known == name]
        for future in meant:
            future.cancel()

    def _done(self, number: int, future: Future[Judgment]) -> None:
        with self._lock:
            name = self._waiting[number][0]
        try:
            self._tell({"id": name, **_answer(number, future)})
        finally:
            with self._lock:
                del self._waiting[number]
                self._lock.notify_all()
            self._free.release()

    def _tell(self, answer: Mapping[str, Any]) -> None:
        text = json.dumps({"schema": SCHEMA, **answer}, ensure_ascii=True)
        with self._lock:
            if self._gone:
                return
            try:
                self._write(f"{text}\n")
            except (OSError, ValueError):  # it reads no more
                self._gone = True
            left = [future for _, future in self._waiting.values()] if self._gone else []
        for future in left:
            future.cancel()


def _answer(number: int, future: Future[Judgment]) -> Mapping[str, Any]:
    if future.cancelled():
        return {"outcome": "cancelled"}
    if (trouble := future.exception()) is not None:
        return {"line": number, "error": str(trouble)}
    found = future.result()
    return {
        "outcome": found.outcome.value, "sentence": found.sentence, "score": found.score, "scores": dict(found.scores),
        "failures": [asdict(each) for each in found.failures], "advice": list(found.advice), "seed": found.seed,
        "seconds": found.seconds, "complete": found.complete, "cached": found.cached,
    }  # fmt: skip


# --- requests ---------------------------------------------------------------------------------------------------------


def _object(line: str) -> Mapping[str, Any]:
    if len(line) > _LONGEST:
        raise _RequestError(f"it is longer than {_LONGEST:,} characters")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _RequestError(f"it is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise _RequestError(f"it holds {type(found).__name__}, not an object")
    return found


def request_of(told: Mapping[str, Any]) -> tuple[Candidate, dict[str, Any]]:
    """Return the code that a request names, and its options. Raises ValueError, which says what is wrong."""
    if strange := told.keys() - {"id", *_CODE, *_OPTIONS}:
        raise _RequestError(f"{min(strange)!r} is not one of id, {', '.join((*_CODE, *_OPTIONS))}, or cancel")
    given = [name for name in _CODE if name in told]
    if len(given) != 1:
        raise _RequestError(f"give one of {', '.join(_CODE)}, not {' and '.join(given) or 'none'}")
    for name, value in told.items():
        _check(name, value)
    return _code(given[0], told[given[0]]), {name: told[name] for name in _OPTIONS if name in told}


def _check(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in _TEXTS and not isinstance(value, str):
        raise _RequestError(f"{name} must be a text, not {type(value).__name__}")
    if name in _FLAGS and not isinstance(value, bool):
        raise _RequestError(f"{name} must be true or false, not {type(value).__name__}")
    if name == "seed" and not (isinstance(value, int) and number and 0 <= value < 2**63):
        raise _RequestError("seed must be a whole number from 0 on, below 2^63")
    if name == "seconds" and not (number and isinstance(value, int | float) and 1 <= value <= 86400):
        raise _RequestError("seconds must be a number from 1 to 86400")


def _code(name: str, value: Any) -> Candidate:
    if name == "files":
        if not isinstance(value, dict):
            raise _RequestError("files must be an object of names and texts")
        return value
    if name == "path":
        if not value or "\n" in value:
            raise _RequestError("path must be a module's name, a .py file or a folder")
        return Path(value) if os.sep in value else str(value)
    return f"{value}\n"


# --- where lines come from --------------------------------------------------------------------------------------------


def lines_of(stream: BufferedIOBase | BinaryIO) -> Iterator[str]:
    """Yield the lines of a stream; one that is too long is yielded in part, and its rest is left out."""
    while line := stream.readline(_LONGEST + 2):
        part = line
        while part and not part.endswith(b"\n"):
            part = stream.readline(_LONGEST)
        yield line.decode("utf-8", errors="replace")


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    judges: JudgePool


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        answer_lines(lines_of(self.rfile), self._write, server.judges)

    def _write(self, text: str) -> None:
        self.wfile.write(text.encode())


def listen(path: Path, judges: JudgePool, ready: Callable[[], None] = lambda: None) -> None:
    """Answer callers at a socket file that only its owner may use, until interrupted. Raises OSError."""
    before = os.umask(0o177)
    try:
        server = _Server(str(path), _Connection)
    finally:
        os.umask(before)
    server.judges = judges
    try:
        with server:
            ready()
            server.serve_forever()
    finally:
        path.unlink(missing_ok=True)
