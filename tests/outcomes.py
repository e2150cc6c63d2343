"""Outcomes that cannot have changed: a case that has passed is not measured again while all that it depends on stays.

A test that is marked `stored(inputs=…)` says of each case by a function what its outcome depends on. The digest of that
is kept where it passes, in the user's cache. A hit is reported as *stored*, not as passed; `--no-store` measures anew.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from conformkit.spec.clauses import clauses

from .closure import closure, within
from .tiers import ROOT

__all__ = ["MOST", "Inputs", "Outcomes", "Store", "depends_on", "digest", "law", "place", "product"]

MOST = 40_000
"""How many outcomes are kept, the newest; of one commit there are about 4,500."""
_HIT = "from the store"
"""The property by which reports of cases that were not measured are known."""
_KEY = pytest.StashKey[str]()
_PASSED = pytest.StashKey[list[str]]()
_ALWAYS = ("pyproject.toml", "tests/closure.py", "tests/outcomes.py")
"""What each outcome depends on besides."""
_DRIVER = "conformance/driver"
"""Runs in processes of its own, where nobody sees its imports."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the outcome of a case depends on, besides the test's own module and all that is installed."""

    modules: tuple[str, ...] = ()
    """Modules, with all that they import."""
    files: tuple[str | Path, ...] = ()
    """Files, and folders with all that is in them."""
    texts: tuple[str, ...] = ()
    """Anything else, such as clauses or numbers."""
    apart: tuple[str, ...] = ()
    """Folders whose data is told by `files` and `texts`."""


@cache
def product() -> tuple[str, ...]:
    """Return the files of the product, for cases that start commands: nobody sees what those import."""
    return tuple(file for folder in ("spec", "fixtures", "reference", "conformance", "cli") for file in within(folder))


def law(names: Iterable[str]) -> Inputs:
    """Return what verdicts on these clauses depend on: their words, their tests, and the same of those they need."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += clauses()[name].needs
    wanted = [clauses()[name] for name in sorted(found)]
    modules = sorted({f"conformance/suite/test_{clause.document}.py" for clause in wanted})
    words = [str(replace(clause, line=0)) for clause in wanted]
    return Inputs(modules=tuple(modules), texts=tuple(words), apart=("conformance/defects/", "spec/"))


def key_of(item: pytest.Item) -> str | None:
    """Return the digest of what a case depends on; None if its test is not marked."""
    mark = item.get_closest_marker("stored")
    if mark is None:
        return None
    inputs: Callable[..., Inputs] = mark.kwargs["inputs"]
    case = getattr(item, "callspec", None)
    own = item.path.relative_to(ROOT).as_posix()
    return digest(own, item.nodeid, inputs(**(case.params if case is not None else {})))


def digest(own: str, name: str, inputs: Inputs) -> str:
    """Return the digest of a case of this name in the test module `own`."""
    files = {*depends_on(own, inputs), *_ALWAYS, *_fixtures(own)}
    parts = [name, _installed(), *inputs.texts, *(f"{path} {_of_file(path)}" for path in sorted(files))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def depends_on(own: str, inputs: Inputs) -> frozenset[str]:
    """Return the files that an outcome depends on: the test's module, what it names, all that these import."""
    modules = tuple(sorted({own, *inputs.modules, *_driver()}))
    return _closed(modules, inputs.apart).union(path for place in inputs.files for path in within(_relative(place)))


def _fixtures(own: str) -> list[str]:
    """Return what hands in fixtures. Of what a conftest.py imports it takes processes alone: the driver."""
    places = [folder / "conftest.py" for folder in (ROOT / own).parents if folder.is_relative_to(ROOT)]
    return [_relative(place) for place in places if place.is_file()]


_closed = cache(closure)


@cache
def _driver() -> tuple[str, ...]:
    return tuple(within(_DRIVER))


@cache
def _of_file(path: str) -> str:
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()


@cache
def _installed() -> str:
    """Return versions of Python, of the kind of processor, and of all that is installed."""
    found = sorted({f"{one.name}=={one.version}" for one in metadata.distributions()})
    return " ".join([sys.version, sys.platform, platform.machine(), *found])


def _relative(path: str | Path) -> str:
    return path.relative_to(ROOT).as_posix() if isinstance(path, Path) else path


def place() -> Path:
    """Return the file in which outcomes are kept: in the user's cache."""
    cache_folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache_folder / "conformkit" / "outcomes.txt"


class Store:
    """Digests of cases that have passed, one a line in a file that several processes append to."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = frozenset(_lines(file))

    def __contains__(self, key: str) -> bool:
        return key in self._known

    def keep(self, key: str) -> None:
        """Note a case that has passed. Where nothing can be written, nothing is kept."""
        if key not in self._known:
            try:
                self._file.parent.mkdir(parents=True, exist_ok=True)
                with self._file.open("a", encoding="ascii") as lines:
                    lines.write(f"{key}\n")
            except OSError:
                return

    @staticmethod
    def trim(file: Path) -> None:
        """Forget the oldest outcomes where there are more than `MOST`."""
        lines = _lines(file)
        if len(lines) > MOST:
            shorter = file.with_suffix(f".{os.getpid()}")
            shorter.write_text("".join(f"{line}\n" for line in [*dict.fromkeys(lines)][-MOST // 2 :]), encoding="ascii")
            shorter.replace(file)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return []


class Outcomes:
    """The plugin: cases in the store are reported, not run; those that pass are kept there."""

    def __init__(self, file: Path, *, ignored: bool) -> None:
        self._file, self._ignored = file, ignored
        self._store = Store(file)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report a case whose outcome is known; note the digest of another one."""
        key = key_of(item)
        if key is None:
            return None
        if key not in self._store or self._ignored:
            item.stash[_KEY], item.stash[_PASSED] = key, []
            return None
        item.session._setupstate.teardown_exact(nextitem)  # what earlier cases have left
        _report_hit(item)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Keep a case whose setup, call and teardown have all passed."""
        report = yield
        if _KEY in item.stash and report.outcome == "passed":
            item.stash[_PASSED].append(report.when or "")
            if item.stash[_PASSED] == ["setup", "call", "teardown"]:
                self._store.keep(item.stash[_KEY])
        return report

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Count hits apart from what was measured."""
        hit = report.when == "call" and _HIT in dict(report.user_properties)
        return ("stored", "=", "STORED") if hit else None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many cases were not measured, and how to measure them."""
        if hits := len(terminalreporter.stats.get("stored", ())):
            line = f"{hits} outcomes from the store {self._file}; --no-store measures them again"
            terminalreporter.write_line(line)
        Store.trim(self._file)


def _report_hit(item: pytest.Item) -> None:
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for when in ("setup", "call", "teardown"):
        report = pytest.TestReport(
            item.nodeid, item.location, dict.fromkeys(item.keywords, 1), "passed", None, when,
            user_properties=[(_HIT, True)],
        )  # fmt: skip
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
