"""A report on hidden draws: a failure tells its verdict in a sentence, and nothing that its code could choose.

Four things could reveal drawn numbers: the kit's own messages, which quote them; the implementation's texts and the
places where it raises, since it saw the inputs; measurements, since it can influence them; and kinds of failures, of
exceptions for one, since it can choose among dozens. Two runs with the same verdicts read alike. Verdicts, known
mistakes, parts and choices are shown in full. A verdict is information too: with a fixed seed, many submissions can
reveal a lot.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from conformkit.conformance.driver.foreign import own_file
from conformkit.conformance.driver.location import parse
from conformkit.conformance.engine.results import DifferingPart, Report, Result, Verdict
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.outline import BROKEN, LATE, LOST, RAISED, Outline

__all__ = ["redacted", "veiled"]

_TOLD: Mapping[Verdict, Outline] = {Verdict.ERROR: RAISED, Verdict.CRASH: LOST, Verdict.TIMEOUT: LATE}
"""All that a failure says, by its verdict; of the others, that the clause does not hold."""
_WHERE = re.compile(r"(?P<file>[^:\n]{1,300}\.py):(?P<line>\d{1,6})(?: in .*)?")
_PATH = re.compile(r"[a-z_0-9]{1,30}(?:\.[a-z_0-9]{1,30}){0,4}")


def redacted(report: Report) -> Report:
    """Return a report without anything that could hold hidden numbers, marked as hidden."""
    return replace(
        report, hidden=True, seed=0, results=[veiled(result, report) for result in report.results],
        parts={name: _part(part) for name, part in report.parts.items() if part.path},
    )  # fmt: skip


def veiled(result: Result, report: Report | None = None) -> Result:
    """Return a result with outlines instead of its texts; `report` says where components begin."""
    silent = replace(result, finding=None, output="", excerpt=None, seconds=0.0, distance=None, where="")
    if not result.tried:
        return silent  # a reason found before any draw
    if result.verdict.red:
        finding = Finding(Kind.UNTRUE, _TOLD.get(result.verdict, BROKEN), verbatim=True)
        where = _definition(result, report) if report is not None else ""
        return replace(silent, finding=finding, where=where, reason="", extents={})
    sentence = "" if result.verdict is Verdict.PASS else result.outline
    return replace(silent, reason=sentence)


def _definition(result: Result, report: Report) -> str:
    """Return where the component of a clause begins, as it was known before any draw.

    Not the line that raised: code can raise at any line that it computes from its input.
    """
    match = _WHERE.fullmatch(report.sources.get(result.clause.component, ""))
    if match is None or not report.location:
        return ""
    home = Path(report.location)
    for base in (home.parent, home):
        file = own_file(base, match["file"], home.parent)
        if file is not None and _begins(file, int(match["line"])):
            return f"{match['file']}:{match['line']}"
    return ""


def _begins(file: Path, line: int) -> bool:
    """Whether a definition or its first decorator stands on a line."""
    tree = parse(file)
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found = (node for node in ast.walk(tree) if isinstance(node, kinds)) if tree is not None else ()
    return any(line in {node.lineno, *(one.lineno for one in node.decorator_list)} for node in found)


def _part(part: DifferingPart) -> DifferingPart:
    path = part.path if _PATH.fullmatch(part.path) else "one"
    return DifferingPart(path, f"{path} is the first part that differs")
