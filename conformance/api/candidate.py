"""One code that a program wants judged: what it consists of, where it is put, and how it is judged."""

from __future__ import annotations

import ast
import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from conformkit.conformance.api.judgment import Judgment, judgment, refused
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.sandbox.bubblewrap import program
from conformkit.conformance.driver.spawn.warm import WorkerFactory
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunOptions, drawn_seed, requested
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level, UnknownClauseError, select

__all__ = ["Candidate", "Task", "asked", "judged"]

Candidate = str | bytes | os.PathLike[str] | Mapping[str, str]
"""A text with a line break, or bytes, is code; any other text is what `conform run` takes. A mapping holds the files of
a package by their relative names."""

_SECONDS = 600.0
_MOST_BYTES = 5_000_000
_MOST_FILES = 1_000
_LONGEST_NAME = 200
_PACKAGE, _FILE = "candidate", "candidate.py"
"""How code without a name is called."""
_ISOLATIONS = ("sandbox", "process", "none")


@dataclass(frozen=True, slots=True)
class Task:
    """A code, and the options of its run. It can be pickled."""

    code: Candidate
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """How the code is called in its report."""
        return _PACKAGE if self.files() or isinstance(self.code, Mapping) else os.fsdecode(os.fspath(self.code))

    def files(self) -> Mapping[str, str | bytes]:
        """Return the files of which it consists; none where it is a path or a module's name."""
        code = self.code
        if isinstance(code, Mapping):
            return code
        text = isinstance(code, bytes) or (isinstance(code, str) and "\n" in code)
        return {_FILE: code} if text else {}  # type: ignore[dict-item]

    def key(self) -> str:
        """Return what stands for its text and options; empty for what may change outside."""
        files = self.files()
        if not files:
            return ""
        told = repr((sorted(files.items()), sorted(self.options.items(), key=lambda item: item[0])))
        return hashlib.sha256(told.encode(errors="surrogatepass")).hexdigest()


def asked(options: RunOptions) -> dict[str, Any]:
    """Return the options with what holds by default. Raises IsolationUnavailable, TypeError, ValueError."""
    found: dict[str, Any] = {"isolation": "sandbox", "seconds": _SECONDS, "drawn": "seed" not in options, **options}
    found.setdefault("folder", Path.cwd())  # a worker's own is another one
    found["level"] = Level(found.get("level", Level.MUST))
    found.setdefault("discover", not found.get("strict"))
    try:
        select(requested("judge", _PACKAGE, **found).without)
    except UnknownClauseError as error:
        raise ValueError(str(error)) from None
    if found["isolation"] not in _ISOLATIONS:
        raise ValueError(f"isolation is sandbox, process or none, not {found['isolation']!r}")
    if found["isolation"] == "sandbox":
        program()
    return found


def judged(task: Task, scratch: Path, warm: Callable[[], WorkerFactory | None]) -> Judgment:
    """Judge a code in a folder below `scratch`; `warm` gives the process whose forks run it, if there is one.

    Raises IsolationUnavailable.
    """
    started = time.perf_counter()
    try:
        with _placed(task, scratch) as (impl, folder):
            options = {"seed": drawn_seed(), **task.options}
            request = requested("judge", impl, **options)
            request = replace(request, folder=folder or request.folder)
            made = warm() if request.isolation == "process" else None
            report = run(request, early=HeadStart(None, made) if made is not None else None)
            return judgment(task.name, report, time.perf_counter() - started)
    except LoadFailure as failure:
        found = refused(task.name, failure.problem, failure.advice, where=failure.where)
    except (ConfigError, _Unreadable) as problem:
        found = refused(task.name, str(problem))
    return replace(found, seconds=time.perf_counter() - started)


class _Unreadable(ValueError):
    """The code is no code; the text says why."""


@contextmanager
def _placed(task: Task, scratch: Path) -> Iterator[tuple[str, Path | None]]:
    """Write a code into a folder of its own; yield what is judged there, and the folder. Raises _Unreadable."""
    files = task.files()
    if not files:
        if isinstance(task.code, Mapping):
            raise _Unreadable("it has no files")
        yield task.name, None
        return
    texts = {name: _text(name, content) for name, content in files.items()}
    _check(texts)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="code-") as folder:
        alone = list(texts) == [_FILE]
        for name, text in texts.items():
            path = Path(folder, *([] if alone else [_PACKAGE]), PurePosixPath(name))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        yield _FILE if alone else _PACKAGE, Path(folder)


def _text(name: str, content: object) -> str:
    if isinstance(content, bytes):
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _Unreadable(f"{name} is no text in UTF-8: {error.reason} at byte {error.start}") from None
    if not isinstance(content, str):
        raise _Unreadable(f"{name} holds {type(content).__name__}, not text")
    return content


def _check(texts: Mapping[str, str]) -> None:
    """Raise _Unreadable for what need not be judged to be refused."""
    if len(texts) > _MOST_FILES:
        raise _Unreadable(f"it has {len(texts)} files; {_MOST_FILES} are allowed")
    if sum(map(len, texts.values())) > _MOST_BYTES:
        raise _Unreadable(f"it is longer than {_MOST_BYTES:,} characters")
    for name, text in texts.items():
        path = PurePosixPath(name)
        if (
            not name
            or path.is_absolute()
            or ".." in path.parts
            or "\\" in name
            or "\0" in name
            or len(name) > _LONGEST_NAME
        ):
            raise _Unreadable(f"{name[:_LONGEST_NAME]!r} is no relative name of a file inside the package")
        if name.endswith(".py"):
            _parsed(name, text)
    if not any(text.strip() for name, text in texts.items() if name.endswith(".py")):
        raise _Unreadable("it holds no Python code")


def _parsed(name: str, text: str) -> None:
    try:
        compile(text, name, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise _Unreadable(f"{name}{f', line {line}' if line else ''} is no Python: {error.args[0]}") from None
    except (MemoryError, RecursionError):
        raise _Unreadable(f"{name} is nested too deeply to be read") from None
