"""A comparison for people: in the terminal, as Markdown, as an HTML page."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from conformkit.conformance.apps.compare.comparison import ClauseRow, Comparison
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.markdown import code, escape
from conformkit.conformance.report.pages import MARKS, page
from conformkit.conformance.report.terminal import say
from conformkit.conformance.text import count, listed, one_line

__all__ = ["SHORT", "as_html", "as_markdown", "write"]

SHORT: Mapping[Verdict | None, str] = {
    Verdict.PASS: "pass", Verdict.FAIL: "FAIL", Verdict.ERROR: "ERROR", Verdict.CRASH: "CRASH", Verdict.TIMEOUT: "TIME",
    Verdict.BLOCKED: "block", Verdict.NOT_IMPLEMENTED: "none", Verdict.NOT_APPLICABLE: "n/a", Verdict.NOT_RUN: "?",
    None: "",
}  # fmt: skip
"""Verdicts in a narrow column."""
_CELL = 6


def write(comparison: Comparison, console: Console, *, everything: bool = False) -> None:
    """Print the verdict of each, then the clauses on which they differ, or all."""
    for number, column in enumerate(comparison.columns, 1):
        say(console, column.line, lead=f"{number}  ", style="" if column.conforms else "red")
    for name in comparison.mixed:
        say(console, f"the reports differ in {name}, which alone may change verdicts", lead="note: ")
    rows = comparison.rows(everything=everything)
    console.print()
    if rows:
        _table(rows, len(comparison.columns), console)
        console.print()
    say(console, summary(comparison))


def summary(comparison: Comparison) -> str:
    """Return one sentence with the number of clauses on which they differ."""
    judged, differing = len(comparison.rows(everything=True)), len(comparison.rows())
    if not judged:
        return "nothing was judged"
    worse = [clause.id for clause in comparison.worse()]
    sentence = f"; the first is worse on {listed(worse)}" if worse else ""
    return f"the verdicts differ on {differing} of {count(judged, 'clause')}{sentence}"


def as_markdown(comparison: Comparison, *, everything: bool = False) -> str:
    """Return a table for a pull request; names of implementations are written as code."""
    heads = "".join(f" {number} |" for number, _ in enumerate(comparison.columns, 1))
    lines = ["# Comparison", ""]
    lines += [
        f"{number}. {'✅' if c.conforms else '❌'} {code(c.line)}" for number, c in enumerate(comparison.columns, 1)
    ]
    lines += ["", f"{escape(summary(comparison)).capitalize()}.", ""]
    rows = comparison.rows(everything=everything)
    if rows:
        lines += [f"| clause |{heads} what it says |", f"| --- |{' --- |' * len(comparison.columns)} --- |"]
    for row in rows:
        cells = "".join(f" {_marked(verdict)} |" for verdict in row.verdicts)
        lines.append(f"| {code(row.clause.id)} |{cells} {escape(row.clause.title)} |")
    return "\n".join(lines).rstrip() + "\n"


def as_html(comparison: Comparison, *, everything: bool = False) -> str:
    """Return a page, in one file."""
    rows = comparison.rows(everything=everything)
    return page("compare.html", comparison=comparison, rows=rows, summary=summary(comparison), everything=everything)


def _marked(verdict: Verdict | None) -> str:
    return f"{MARKS[verdict]} {verdict}" if verdict is not None else ""


def _table(rows: list[ClauseRow], columns: int, console: Console) -> None:
    width = max(len(row.clause.id) for row in rows)
    if width + columns * _CELL > console.width:
        for row in rows:
            say(console, _in_words(row), lead=f"{row.clause.id}: ")
        return
    head = "".join(f"{number:<{_CELL}}" for number in range(1, columns + 1))
    say(console, f"{'':{width}}  {head}".rstrip())
    for row in rows:
        cells = "".join(f"{SHORT[verdict]:<{_CELL}}" for verdict in row.verdicts)
        lead = f"{row.clause.id:{width}}  {cells}"
        roomy = console.width - len(lead) > 24
        if roomy:
            say(console, one_line(row.clause.title, 200), lead=lead)
        else:
            say(console, lead.rstrip())


def _in_words(row: ClauseRow) -> str:
    by_verdict: dict[str, list[str]] = {}
    for number, verdict in enumerate(row.verdicts, 1):
        by_verdict.setdefault(SHORT[verdict], []).append(str(number))
    return "; ".join(f"{word} {', '.join(numbers)}" for word, numbers in by_verdict.items() if word)
