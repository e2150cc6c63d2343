"""A report on hidden draws: what could hold a number that was drawn or wanted is left out, or told as an outline.

Three things could carry such numbers out: the kit's own messages, which quote them; what the implementation says, since
it saw the inputs; and measurements, since it can choose what is measured. Verdicts, known mistakes, parts and choices
are told in full. A verdict is a bit, too: with a seed that stays the same, who hands in often enough learns much.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from conformkit.conformance.assertions.outlines import BROKEN, order
from conformkit.conformance.engine.results import Part, Report, Result, Verdict

__all__ = ["veil", "veiled"]

_WHERE = re.compile(r"(?P<file>[^:\n]{1,300}\.py):(?P<line>\d{1,6})(?: in .*)?")
_PATH = re.compile(r"[a-z_0-9]{1,30}(?:\.[a-z_0-9]{1,30}){0,4}")
_BYTES = 1 << 20


def veil(report: Report) -> None:
    """Leave out of a report what could hold hidden numbers, and mark it."""
    report.hidden, report.seed = True, 0
    report.results = [veiled(result, report.location) for result in report.results]
    report.parts = {name: _part(part) for name, part in report.parts.items()}


def veiled(result: Result, location: str = "") -> Result:
    """Return a result with outlines in place of its texts; `location` is where the implementation lives."""
    silent = replace(
        result, message="", details=(), output="", excerpt=None, seconds=0.0, distance=order(result.distance), where=""
    )
    if not result.tried:
        return silent  # a reason from before any draw
    if result.verdict.red:
        message = result.outline or BROKEN
        return replace(silent, message=message, where=_own_line(result.where, location), reason="")
    told = "" if result.verdict is Verdict.PASS else result.outline
    return replace(silent, reason=told)


def _own_line(where: str, location: str) -> str:
    """Return `file:line` if the implementation has such a line; anything else could be a message."""
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


def _part(part: Part) -> Part:
    path = part.path if _PATH.fullmatch(part.path) else "one"
    return Part(path, f"{path} is the first part that differs")
