"""Reports that commands read and write, and the errors if they can't."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from conformkit.cli.exits import Exit, fail, wrong

if TYPE_CHECKING:
    from conformkit.conformance.engine.results import Report

__all__ = ["STDOUT", "print_utf8", "read_report", "report_targets", "write_files"]

STDOUT = "-"
_BY_HAND = frozenset({".py", ".pyi", ".ipynb", ".toml", ".cfg"})


def report_targets(paths: Mapping[str, str]) -> dict[str, str]:
    """Return where reports go, by option; exit with code 2, before anything runs, if one can't be written."""
    from conformkit.conformance.report.files import obstacle

    wanted = {option: path for option, path in paths.items() if path}
    for option, path in wanted.items():
        problem = _precious(Path(path)) or obstacle(Path(path)) if path != STDOUT else ""
        if problem:
            wrong(option, f"{problem}.")
    seen: dict[str, str] = {}
    for option, path in wanted.items():
        other = seen.setdefault(path if path == STDOUT else str(Path(path).resolve()), option)
        if other != option:
            wrong(option, f"and {other} would both write to {path}; name two places.")
    return wanted


def _precious(path: Path) -> str:
    """Return why a report must not replace this file: it was written by hand."""
    if path.suffix.lower() in _BY_HAND and os.path.lexists(path):
        return f"{path} is not a report and would be lost; name another file"
    return ""


def write_files(targets: Mapping[str, str], text_of: Callable[[str], str]) -> None:
    """Write each report, or print it; exit with code 5 if that fails."""
    from conformkit.conformance.report.files import write

    for option, path in targets.items():
        text = text_of(option)
        if path == STDOUT:
            print_utf8(text)
            continue
        try:
            write(Path(path), text)
        except OSError as error:
            fail(Exit.KIT_FAILED, f"the report could not be written to {path}: {error.strerror or error}")


def print_utf8(text: str) -> None:
    """Print UTF-8 whatever the locale: a machine reads it. A reader that left changes no verdict."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()


def read_report(path: str, option: str) -> Report:
    """Return the report in a file, or on stdin for `-`; exit with the code for wrong usage if it is not a report."""
    from conformkit.conformance.report.stored import NotAReport, from_object

    try:
        text = sys.stdin.buffer.read() if path == STDOUT else Path(path).read_bytes()
        found = json.loads(text)
        if not isinstance(found, dict):
            raise NotAReport("it is not a JSON object")
        return from_object(found)
    except OSError as error:
        made = "; conform run --impl mypkg --json report.json makes one" if isinstance(error, FileNotFoundError) else ""
        wrong(option, f"{path} could not be read: {error.strerror or error}{made}.")
    except (ValueError, RecursionError) as error:
        wrong(option, f"{path} is not a report of conform run --json: {error}.")
