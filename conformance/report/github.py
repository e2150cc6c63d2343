"""What GitHub Actions shows: annotations at lines, and a summary of the job.

A runner reads each line of a job's output that begins with `::` as a command. An implementation can print anything, so
commands are switched off while its output may appear, and switched on again by a word that it can't know.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from conformkit.conformance.engine.results import Report, Result
from conformkit.conformance.report.causes import briefly, likely_cause
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.markdown import as_markdown
from conformkit.conformance.report.places import place, place_of_refusal
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.wording import failures, verdict_line
from conformkit.conformance.text import count, one_line, plain

__all__ = ["commands", "muted", "refusal", "summarize"]

MOST = 10
"""Number of errors, and of warnings, that GitHub shows for one step."""
_LARGEST = 1_000_000
"""Maximum size of a summary: one mebibyte."""


@contextmanager
def muted(stream: TextIO) -> Iterator[None]:
    """Switch workflow commands off for output printed in this context."""
    word = secrets.token_hex(16)
    print(f"::stop-commands::{word}", file=stream, flush=True)
    try:
        yield
    finally:
        print(f"\n::{word}::", file=stream, flush=True)


def commands(report: Report, root: Path | None = None) -> list[str]:
    """Return a workflow command for each red clause that GitHub shows, and one for the verdict."""
    found = from_object(as_object(report))
    where = root or Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    red = failures(found)
    errors = [_annotation(found, r, where) for r in red if found.breaks(r) and not found.accepted(r)]
    warnings = [_annotation(found, result, where) for result in red if not found.breaks(result)]
    shown = [*_first(errors, MOST - 1, "error"), *_first(warnings, MOST, "warning")]
    kind = "notice" if found.conforms else "warning" if found.settled else "error"
    return [_command(kind, {"title": "conform"}, verdict_line(found)), *shown]


def refusal(impl: str, problem: str, where: str) -> str:
    """Return a workflow command for code that could not be judged at all, at the line that raised if it is known."""
    found = place_of_refusal(impl, where, Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()))
    properties = {**({"file": found[0], "line": str(found[1])} if found else {}), "title": "conform"}
    return _command("error", properties, f"{one_line(impl, 200)} cannot be judged: {plain(problem, 600)}")


def summarize(report: Report) -> str:
    """Append the report to the job summary; return why that was not possible, or nothing."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return "GITHUB_STEP_SUMMARY is not set: this is not a step of a GitHub job"
    text = as_markdown(report)
    if len(text.encode()) > _LARGEST:
        text = f"{verdict_line(report)}\n"
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        return f"the summary could not be written to {path}: {error.strerror or error}"
    return ""


def _annotation(report: Report, result: Result, root: Path) -> str:
    properties = {"title": f"{result.clause.id} {briefly(report, result)}"}
    where = place(report, result, root)
    if where is not None:
        properties = {"file": where[0], "line": str(where[1]), **properties}
    named = (f"{label} {fact}" for label, fact in likely_cause(report, result))
    text = "\n".join([result.message or result.clause.title, *result.details, *named])
    return _command("error" if report.breaks(result) else "warning", properties, text)


def _first(found: list[str], most: int, kind: str) -> list[str]:
    if len(found) <= most:
        return found
    left = len(found) - most + 1
    return [*found[: most - 1], _command(kind, {"title": "conform"}, f"and {count(left, 'clause')} more")]


def _command(kind: str, properties: dict[str, str], text: str) -> str:
    listing = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{kind} {listing}::{_data(text)}"


def _data(text: str) -> str:
    """Escape characters that would end or change a command's message."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """Escape also characters that would end a property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")
