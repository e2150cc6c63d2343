"""A report for people: what is wrong as sentences, then the ledger, then the verdict.

Whatever an implementation can influence is printed as `rich.text.Text`, never as markup, and through `plain`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text

from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.wording import (
    HIDDEN,
    command,
    excuse_lines,
    facts,
    failures,
    in_order,
    ledger_line,
    page_of,
    seed_line,
    sizes_line,
    undeclared_line,
    unjudged,
    verdict_line,
    way,
)
from conformkit.conformance.text import count, listed, one_line, plain
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["Color", "console", "render", "say", "wants_color", "write", "write_milestones", "write_some"]

Color = Literal["auto", "always", "never"]

IN_FULL = 20
"""Maximum number of failures shown in full; the others by id and title, unless -v is given."""

_STYLES = {Verdict.PASS: "green", Verdict.BLOCKED: "magenta", Verdict.NOT_RUN: "yellow"}


def console(stream: TextIO, color: Color = "auto", width: int | None = None) -> Console:
    """Return a console that never interprets markup; it uses color if asked to, or on a terminal."""
    colored = wants_color(stream, color)
    return Console(
        file=stream, width=width, force_terminal=colored or None, color_system="auto" if colored else None,
        no_color=not colored, markup=False, emoji=False, highlight=False, soft_wrap=False,
    )  # fmt: skip


def wants_color(stream: TextIO, color: Color = "auto") -> bool:
    """Return whether to color: the option, then NO_COLOR, then FORCE_COLOR, then whether it is a terminal."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def render(report: Report, width: int = 80, *, color: bool = False, verbose: bool = False, quiet: bool = False) -> str:
    """Return the report as text."""
    stream = io.StringIO()
    page = console(stream, "always" if color else "never", width)
    write(report, page, verbose=verbose, quiet=quiet)
    return stream.getvalue()


def write(
    report: Report, page: Console, *, verbose: bool = False, quiet: bool = False, repeat: Sequence[str] = ()
) -> None:
    """Print the report; `repeat` holds further options for the `again:` lines."""
    if not quiet:
        _header(report, page)
        if verbose:
            _every_clause(report, page)
        _unusable(report, page)
        _undeclared(report, page)
        _parts(report, page)
        _failures(report, page, repeat, verbose=verbose)
        _unjudged(report, page)
        _taken(report, page)
        _missing(report, page)
        write_milestones(report, page)
        say(page, ledger_line(report))
        if sizes := sizes_line(report):
            say(page, sizes, lead="sizes: ")
    say(page, verdict_line(report), style="bold green" if report.conforms else "bold red")


def _header(report: Report, page: Console) -> None:
    location = _from_here(report.location)
    place = f" at {one_line(location, 400)}" if location not in ("", report.implementation) else ""
    framework = f" · {one_line(report.framework, 80)}" if report.framework else ""
    say(
        page,
        f"conform {kit_version()} · spec {SPEC_VERSION} · {one_line(report.implementation, 200)}{place}{framework}",
    )
    facts = [
        f"profile {report.profile}",
        f"level {report.level}",
        f"seed {seed_line(report)}",
        f"isolation {report.isolation}",
    ]
    say(page, ", ".join([*facts, report.device, *([report.dtype] if report.dtype else [])]))
    if report.variant:
        say(page, ", ".join(f"{name} = {value}" for name, value in sorted(report.variant.items())), lead="variant: ")
    for line in excuse_lines(report):
        say(page, line, lead="declared: ")
    if report.isolation == "none":
        say(
            page,
            "isolation none: this code ran inside the harness and could have changed the verdict",
            lead="note: ",
        )
    for note in [*([HIDDEN] if report.hidden else []), *report.notes]:
        say(page, note, lead="note: ")
    page.print()


def _unusable(report: Report, page: Console) -> None:
    """Print what could not be judged, and what to declare."""
    for name, why in report.unusable.items():
        place = f" ({one_line(why.where, 300)})" if why.where else ""
        lead = "" if name in why.problem else f"{one_line(name, 80)}: "
        say(
            page,
            Text(f"{lead}{one_line(why.problem, 600)}{place}", style="bold red"),
            lead="error: ",
            hang=_indent(page),
        )
        for line in why.advice:
            page.print(Text(f"{'':{_indent(page)}}{plain(line, 600).strip(chr(10))}"), soft_wrap=True)
        page.print()


def _undeclared(report: Report, page: Console) -> None:
    """Print undeclared choices first: one line in conform.toml may fix all that follows."""
    for found in report.undeclared:
        say(page, Text(undeclared_line(found), style="bold yellow"), lead="undeclared: ")
    if report.undeclared:
        what = "this choice" if len(report.undeclared) == 1 else "these choices"
        say(page, f"with {what} the definition reproduces your numbers exactly; undeclared, it is a mistake,")
        say(page, "and all other clauses are judged as if it were declared\n")


def _parts(report: Report, page: Console) -> None:
    """Say which part of each composite to look at first."""
    if report.hints > 1 and report.parts:
        for name, part in report.parts.items():
            say(page, f"{name}: {part.sentence}", lead="part:    ")
        page.print()


def _failures(report: Report, page: Console, repeat: Sequence[str], *, verbose: bool) -> None:
    red = failures(report)
    shown = red if verbose else red[:IN_FULL]
    write_some(report, page, shown, repeat)
    for result in red[len(shown) :]:
        _heading(report, result, page)
    if red[len(shown) :]:
        say(page, f"The last {len(red) - len(shown)} are shortened; -v shows them in full.\n")


def write_some(report: Report, page: Console, results: Sequence[Result], repeat: Sequence[str] = ()) -> None:
    """Print failures in full."""
    for result in results:
        _heading(report, result, page)
        _explanation(report, result, page, repeat)


def _from_here(location: str) -> str:
    """Return a path relative to the current folder, if it lies below that."""
    path, here = Path(location), Path.cwd()
    return str(path.relative_to(here)) if location and path.is_relative_to(here) else location


def _heading(report: Report, result: Result, page: Console) -> None:
    binding = report.breaks(result)
    word = result.verdict.value.upper() if binding else "WARN"
    head = Text.assemble((f"{word} {result.clause.id}", "bold red" if binding else "bold yellow"))
    head.append(f" · {one_line(result.clause.title, 200)}")
    say(page, head, hang=_indent(page))


def _explanation(report: Report, result: Result, page: Console, repeat: Sequence[str]) -> None:
    indent = _indent(page)
    for line in (result.message, *result.details):
        if line:
            say(page, line, indent=indent)
    for label, fact in facts(report, result):
        say(page, fact, indent=indent, lead=f"{label:<8} ")
    if result.output:
        say(page, plain(result.output, 600).strip("\n"), indent=indent, lead=f"{'printed:':<9}")
    if address := page_of(report, result.clause.id):
        page.print(Text(f"{'':{indent}}{'page:':<9}{address}"), soft_wrap=True)
    again = Text(f"{'':{indent}}{'again:':<9}{command(report, result.clause.id, repeat)}")
    page.print(again, soft_wrap=True)
    page.print()


def _unjudged(report: Report, page: Console) -> None:
    """Print what was not judged, one entry per cause."""
    entries = unjudged(report)
    for verdict, cause, ids in entries:
        if verdict is Verdict.BLOCKED:
            text = f"{count(len(ids), 'clause')} not checked until {one_line(cause, 200)} passes: {listed(ids)}"
        else:
            text = f"{count(len(ids), 'clause')} {verdict}: {one_line(cause, 300)}"
        say(page, text, hang=_indent(page))
    if entries:
        page.print()


def _taken(report: Report, page: Console) -> None:
    """Print which binding clauses a declaration took away, where that counts."""
    if report.strict and report.taken():
        by_key: dict[str, list[str]] = {}
        for result in report.taken():
            by_key.setdefault(result.taken, []).append(result.clause.id)
        for key, ids in by_key.items():
            say(
                page,
                f"{count(len(ids), 'clause')} not judged, or not wholly, because of {key}: {listed(ids)}",
                hang=_indent(page),
            )
        page.print()


def _missing(report: Report, page: Console) -> None:
    absent = [name for name in report.missing if name not in report.stubs]
    for name in absent:
        text = (
            f"{one_line(name, 200)} is required by profile {report.profile}, and the implementation does not export it"
        )
        say(page, f"{text}; export it, or say in conform.toml where it is", lead="missing: ", style="red")
    if absent:
        page.print()


def write_milestones(report: Report, page: Console) -> None:
    """Print the progress of an unfinished implementation and what comes next."""
    found = way(report)
    if found is not None:
        say(page, found.so_far, lead="so far:  ")
        say(page, found.next, lead="next:    ", style="bold")
        page.print(Text(f"again:   {found.again}"), soft_wrap=True)
        page.print()


def _every_clause(report: Report, page: Console) -> None:
    for result in in_order(report):
        distance = f" {result.distance:.2g} of the tolerance" if result.distance is not None else ""
        style = "red" if result.verdict.red else _STYLES.get(result.verdict, "dim")
        line = Text.assemble((f"{result.verdict}", style), f" {result.clause.id}{distance}")
        reason = f" ({one_line(result.reason, 200)})" if result.reason else ""
        say(page, line.append(f" · {one_line(result.clause.title, 200)}{reason}"), hang=_indent(page))
    page.print()


def _indent(page: Console) -> int:
    return 5 if page.width >= 60 else 2


def say(page: Console, body: str | Text, *, indent: int = 0, lead: str = "", hang: int = 0, style: str = "") -> None:
    """Print a paragraph, wrapped here so that later lines are indented below the first one, without trailing blanks."""
    text = body if isinstance(body, Text) else Text(plain(body), style=style)
    first = " " * indent + lead
    later = " " * (len(first) + hang)
    room = max(page.width - len(later), 8)
    for number, line in enumerate(text.wrap(page, room, overflow="fold") or [Text()]):
        line.rstrip()
        page.print(Text(later if number else first).append_text(line), soft_wrap=True)
