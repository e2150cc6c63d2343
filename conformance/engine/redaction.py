"""A report on hidden draws: text that could hold a drawn or wanted number is left out or replaced by an outline.

Three things could reveal such numbers: the kit's own messages, which quote them; the implementation's texts, since it
saw the inputs; and measurements, since it can influence them. Verdicts, known mistakes, parts and choices are shown in
full. A verdict is one bit of information too: with a fixed seed, many submissions can reveal a lot.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from conformkit.conformance.engine.results import DifferingPart, Report, Result, Verdict
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.outline import order
from conformkit.conformance.findings.outline import veiled as withheld

__all__ = ["redacted", "veiled"]

_WHERE = re.compile(r"(?P<file>[^:\n]{1,300}\.py):(?P<line>\d{1,6})(?: in .*)?")
_PATH = re.compile(r"[a-z_0-9]{1,30}(?:\.[a-z_0-9]{1,30}){0,4}")
_BYTES = 1 << 20


def redacted(report: Report) -> Report:
    """Return a report without anything that could hold hidden numbers, marked as hidden."""
    return replace(
        report, hidden=True, seed=0, results=[veiled(result, report.location) for result in report.results],
        parts={name: _part(part) for name, part in report.parts.items()},
    )  # fmt: skip


def veiled(result: Result, location: str = "") -> Result:
    """Return a result with outlines instead of its texts; `location` is where the implementation lives."""
    silent = replace(
        result, finding=None, output="", excerpt=None, seconds=0.0, distance=order(result.distance), where=""
    )
    if not result.tried:
        return silent  # a reason found before any draw
    if result.verdict.red:
        finding = withheld(result.finding or Finding(Kind.UNTRUE, ""))
        return replace(silent, finding=finding, where=_own_line(result.where, location), reason="")
    told = "" if result.verdict is Verdict.PASS else result.outline
    return replace(silent, reason=told)


def _own_line(where: str, location: str) -> str:
    """Return `file:line` if the implementation has such a line; anything else could carry a message."""
    match, home = _WHERE.fullmatch(where), Path(location)
    if match is None or not location:
        return ""
    base = home if home.is_dir() and not (home / "__init__.py").is_file() else home.parent
    file, line = base / match["file"], int(match["line"])
    try:
        inside = file.resolve().is_relative_to(base.resolve()) and file.is_file() and file.stat().st_size <= _BYTES
        there = inside and 1 <= line <= len(file.read_bytes().splitlines())
    except OSError:
        return ""
    return f"{match['file']}:{line}" if there else ""


def _part(part: DifferingPart) -> DifferingPart:
    path = part.path if _PATH.fullmatch(part.path) else "one"
    return DifferingPart(path, f"{path} is the first part that differs")
