"""Where in the user's own files a result belongs, for formats that need a file and a line.

The line that raised, else the class that the clause is about, else the file: code scanning on GitHub refuses a whole
log in which one result has no location.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from conformkit.conformance.driver.foreign import own_file
from conformkit.conformance.engine.results import Report, Result

__all__ = ["place", "place_of_refusal", "somewhere", "stand_in"]

_WHERE = re.compile(r"(?P<file>[^:\n]+\.(?:py|toml)):(?P<line>[1-9]\d{0,6})(?: in .*)?")
"""A file, a line, and what it stands in."""


def place(report: Report, result: Result, root: Path) -> tuple[str, int] | None:
    """Return the file, relative to `root` with forward slashes, and the line that a result is about.

    None if nothing of the implementation lies below `root`.
    """
    top = root.resolve()
    for file, line in _candidates(report, result):
        if file.is_relative_to(top):
            return file.relative_to(top).as_posix(), line
    return None


def somewhere(report: Report, result: Result) -> tuple[str, int]:
    """Return a file and a line for an implementation outside of the root: from its own folder on."""
    home = Path(report.location).resolve()
    for file, line in _candidates(report, result):
        if file.is_relative_to(home.parent):
            return file.relative_to(home.parent).as_posix(), line
    return stand_in(report.implementation), 1


def stand_in(implementation: str) -> str:
    """Return the name of a file for an implementation of which no file is known."""
    return f"{re.sub(r'[^A-Za-z0-9_.-]+', '_', implementation)[:100].strip('.') or 'implementation'}.py"


def place_of_refusal(implementation: str, where: str, root: Path) -> tuple[str, int] | None:
    """Return the file, relative to `root`, and the line because of which code could not be judged at all.

    That is the line at fault, else the beginning of the code; None if nothing of it lies below `root`.
    """
    match, home, top = _WHERE.fullmatch(where), Path(implementation), root.resolve()
    lines = [(base, match["file"], int(match["line"])) for base in (home.parent, home)] if match else []
    for base, name, line in [*lines, *((file.parent, file.name, 1) for file in _files(home))]:
        full = own_file(base, name, top)
        if full is not None:
            return full.relative_to(top).as_posix(), line
    return None


def _candidates(report: Report, result: Result) -> Iterator[tuple[Path, int]]:
    """Yield existing files with a line, the best first."""
    if not report.location:
        return
    home = Path(report.location)
    for told in (result.where, *_sources(report, result)):
        match = _WHERE.fullmatch(told)
        if match is None:
            continue
        for base in (home.parent, home):  # by the package's name, or by the folder's
            file = own_file(base, match["file"], home.resolve().parent)
            if file is not None:
                yield file, int(match["line"])
    for file in (own_file(file.parent, file.name, home.resolve().parent) for file in _files(home)):
        if file is not None:
            yield file, 1


def _files(home: Path) -> list[Path]:
    """Return the files of an implementation, the one that is imported first."""
    return [home / "__init__.py", *sorted(home.glob("*.py"))] if home.is_dir() else [home]


def _sources(report: Report, result: Result) -> list[str]:
    """Return where the component of a clause is defined; of a clause about all, the one that its texts name."""
    name = "generate" if result.clause.applies.get("generate") == "yes" else result.clause.component
    own = [report.sources[each] for each in (name, result.clause.component) if each in report.sources]
    if own:
        return own
    found = result.finding
    return [where for each, where in report.sources.items() if found is not None and found.mentions(each)][:1]
