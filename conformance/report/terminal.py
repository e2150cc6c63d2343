"""A report for people: what is wrong as sentences, then the ledger, then the verdict.

Whatever an implementation can influence is printed as `rich.text.Text`, never as markup, and through `plain`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, TextIO

from rich.console import Console
from rich.text import Text

from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.causes import briefly, certainly, facts, is_named, leads, likely_cause, same_cause
from conformkit.conformance.report.tally import Tally, tally
from conformkit.conformance.report.wording import (
    HIDDEN,
    command,
    draft_command,
    each_once,
    failures,
    in_order,
    ledger_line,
    page_of,
    seed_line,
    sizes_line,
    told_excuses,
    undeclared_line,
    unjudged,
    variant_line,
    verdict_line,
    warns,
    way,
)
from conformkit.conformance.text import count, listed, one_line, plain
from conformkit.conformance.versions import SPEC_VERSION, kit_version

__all__ = ["Color", "console", "render", "say", "wants_color", "write", "write_milestones", "write_some"]

Color = Literal["auto", "always", "never"]

_OWN_LEADS = ("found", "unsure")
"""How notes begin that stand for themselves."""
_CAUSES = 4
"""Maximum number of failures to name for which others wait."""
_FIXES = 6
"""Maximum number of failures whose fix is repeated in the list at the end."""
_IN_SHORT = 12
"""Maximum number of mistakes in the list at the end: it stays on the last screen."""
IN_FULL = 20
"""Maximum number of failures shown in full; the others by id and title, unless -v is given."""

_REASON = 600
"""A reason has no more characters: the line that would settle it may stand anywhere in it."""
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


def render(
    report: Report, width: int = 80, *, color: bool = False, verbose: bool = False, quiet: bool = False,
    warnings: bool = False,
) -> str:  # fmt: skip
    """Return the report as text."""
    stream = io.StringIO()
    page = console(stream, "always" if color else "never", width)
    write(report, page, verbose=verbose, quiet=quiet, warnings=warnings)
    return stream.getvalue()


def write(
    report: Report, page: Console, *, verbose: bool = False, quiet: bool = False, warnings: bool = False,
    repeat: Sequence[str] = (), before: Mapping[str, int] | None = None,
) -> None:  # fmt: skip
    """Print the report; `warnings` shows warnings in full.

    `repeat` holds further options for the `again:` lines, `before` the number of clauses of each part that passed in
    the run before this one.
    """
    if not quiet:
        _header(report, page, verbose=verbose)
        if verbose:
            _every_clause(report, page)
        _unusable(report, page)
        _undeclared(report, page)
        _parts(report, page)
        _failures(report, page, repeat, verbose=verbose)
        _known(report, page)
        _warnings(report, page, repeat, full=warnings or verbose, verbose=verbose)
        _unjudged(report, page, verbose=verbose)
        _taken(report, page)
        _missing(report, page)
        write_milestones(report, page)
        _progress(report, page, before or {})
        _in_short(report, page)
        say(page, ledger_line(report))
        if verbose and (sizes := sizes_line(report)):
            say(page, sizes, lead="sizes: ")
    style = "bold green" if report.conforms else "bold yellow" if report.settled else "bold red"
    say(page, verdict_line(report), style=style)


def _header(report: Report, page: Console, *, verbose: bool) -> None:
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
    if choices := variant_line(report):
        say(page, choices, lead="variant: ")
    for how, line in told_excuses(report, folded=not verbose):
        say(page, line, lead=f"{how}: ")
    if report.isolation == "none":
        say(
            page,
            "isolation none: this code ran inside the harness and could have changed the verdict",
            lead="note: ",
        )
    for note in [*([HIDDEN] if report.hidden else []), *report.notes]:
        lead, apart, text = note.partition(": ")
        own = bool(apart) and lead in _OWN_LEADS
        say(page, text if own else note, lead=f"{lead}: " if own else "note: ")
    page.print()


def _unusable(report: Report, page: Console) -> None:
    """Print what could not be judged, and what to declare; once what is said of several."""
    for why, name in each_once(report.unusable):
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
        say(page, f"with {what} the definition fits your code; undeclared, it is a mistake,")
        say(page, "and all other clauses are judged as if it were declared\n")


def _parts(report: Report, page: Console) -> None:
    """Say which part of each composite to look at first, where no failure of it shows a known mistake."""
    for name, sentence in leads(report).items():
        say(page, f"{name}: {sentence}", lead="part:    ")
    if leads(report):
        page.print()


def _failures(report: Report, page: Console, repeat: Sequence[str], *, verbose: bool) -> None:
    red = _binding(report)
    shown = red if verbose else red[:IN_FULL]
    write_some(report, page, shown, repeat, verbose=verbose)
    if rest := red[len(shown) :]:
        for result in rest:
            _line(
                page, f"{result.verdict.value.upper()} {result.clause.id}", f" · {briefly(report, result)}", "bold red"
            )
        say(page, f"The last {len(rest)} are shortened to a line each; -v shows them in full.\n")


def _binding(report: Report) -> list[Result]:
    """Return the red results that bind and that no baseline lists."""
    return [result for result in failures(report) if report.breaks(result) and not report.accepted(result)]


def _known(report: Report, page: Console) -> None:
    """Print a line for each failure that the baseline lists; each is shown in full by its `again:` without one."""
    known = [result for result in failures(report) if report.accepted(result)]
    for result in known:
        _line(page, f"KNOWN {result.clause.id}", f" · {briefly(report, result)}", "bold yellow")
    if known:
        page.print()


def _warnings(report: Report, page: Console, repeat: Sequence[str], *, full: bool, verbose: bool) -> None:
    """Print a line for each clause that is not binding and does not hold; in full on request."""
    found = [result for result in failures(report) if warns(report, result)]
    if full:
        write_some(report, page, found, repeat, verbose=verbose)
    elif found:
        for result in found:
            _line(page, f"WARN {result.clause.id}", f" · {briefly(report, result)}", "bold yellow")
        which = "It does not change the verdict" if len(found) == 1 else "They do not change the verdict"
        more = "print(report.text(warnings=True))" if report.live else "--warnings"
        say(page, f"{which}; {more} shows more.\n")


def _in_short(report: Report, page: Console) -> None:
    """Print one line a mistake, where there are several: the last thing on the screen is a list of what to fix."""
    red = _binding(report)
    if len(red) < 2:
        return
    say(page, "In short:")
    same = same_cause(report, red)
    causes = [result for result in red if result.clause.id not in same]
    for result in causes[:_IN_SHORT]:
        ids = [result.clause.id, *(name for name, first in same.items() if first == result.clause.id)]
        _line(page, f"{result.verdict.value.upper()} {listed(ids)}", f" · {briefly(report, result)}", "bold red")
        fix = dict(likely_cause(report, result)).get("fix:", "")
        if fix and len(causes) <= _FIXES:
            _line(page, "     fix: ", fix, "")
    if causes[_IN_SHORT:]:
        say(page, f"and {len(causes) - _IN_SHORT} more, above: what comes first is what the rest is built on")
    page.print()


def _line(page: Console, lead: str, text: str, style: str) -> None:
    """Print one line, cut at the width of the page."""
    line = Text.assemble((lead, style), plain(text, 400))
    line.truncate(max(page.width, len(lead)), overflow="ellipsis")
    page.print(line, soft_wrap=True)


def _progress(report: Report, page: Console, before: Mapping[str, int]) -> None:
    """Print how many clauses of each part pass, and how many more than in the run before."""
    if report.conforms and not any(part.passed != before.get(part.name, part.passed) for part in tally(report)):
        return
    lines = [_share(part, before, report.found.get(part.name, "")) for part in tally(report)]
    if lines:
        say(page, ", ".join(lines), lead="passing: ")
        page.print()


def _share(part: Tally, before: Mapping[str, int], found: str) -> str:
    """Return a part's share; `found` is the definition that was taken for it, `module:Name`."""
    more, own = part.passed - before.get(part.name, part.passed), found.rpartition(":")[2]
    name = f"{part.name} ({one_line(own, 80)})" if own not in {"", part.name} else part.name
    return f"{name} {part.passed}/{part.asked}" + (f" ({more:+d} since the last run)" if more else "")


def write_some(
    report: Report, page: Console, results: Sequence[Result], repeat: Sequence[str] = (), *, verbose: bool = False
) -> None:
    """Print failures: what happened, the fix, one line of evidence, the command; the rest if `verbose`."""
    same = same_cause(report, results)
    for result in results:
        _heading(report, result, page)
        _explanation(report, result, page, repeat, same.get(result.clause.id, ""), verbose=verbose)


def _from_here(location: str) -> str:
    """Return a path relative to the current folder, if it lies below that."""
    path, here = Path(location), Path.cwd()
    return str(path.relative_to(here)) if location and path.is_relative_to(here) else location


def _heading(report: Report, result: Result, page: Console) -> None:
    binding = report.breaks(result)
    word = result.verdict.value.upper() if binding else "WARN"
    head = Text.assemble((f"{word} {result.clause.id}", "bold red" if binding else "bold yellow"))
    head.append(f" · {briefly(report, result)}")
    say(page, head, hang=_indent(page))


def _explanation(
    report: Report, result: Result, page: Console, repeat: Sequence[str], like: str, *, verbose: bool
) -> None:
    """Print what is known about a failure; `like` is the clause above whose failure has the same cause."""
    indent = _indent(page)
    if like:
        say(page, Text(f"the same mistake as in {like}, above", style="bold"), indent=indent)
    for label, fact in [] if like else likely_cause(report, result):
        say(page, Text(plain(fact), style="bold"), indent=indent, lead=f"{label:<8} ")
    _evidence(report, result, page, like, verbose=verbose)
    for label, fact in facts(report, result):
        if label == "where:" or (not like and (verbose or label != "why:")):
            say(page, fact, indent=indent, lead=f"{label:<8} ")
    if result.message:
        say(page, one_line(result.clause.title, 200), indent=indent, lead="rule:    ")
    if result.output and (verbose or not is_named(result)):
        say(page, plain(result.output, 600).strip("\n"), indent=indent, lead=f"{'printed:':<9}")
    if address := page_of(report, result.clause.id):
        page.print(Text(f"{'':{indent}}{'page:':<9}{address}"), soft_wrap=True)
    again = Text(f"{'':{indent}}{'again:':<9}{command(report, result.clause.id, repeat)}")
    page.print(again, soft_wrap=True)
    page.print()


def _evidence(report: Report, result: Result, page: Console, like: str, *, verbose: bool) -> None:
    """Print what was found: one line where a known mistake says it already, more where nothing does."""
    indent, named = _indent(page), is_named(result) and report.hints >= 3
    if named:
        say(page, f"{result.message}{certainly(result)}", indent=indent, lead="found:   ")
    elif not briefly(report, result).startswith(one_line(result.message, 2000)):
        say(page, result.message, indent=indent)
    sentence = str(result.finding.relation) if result.finding is not None and not named else ""
    lines = [line for line in result.details if line != sentence or sentence not in briefly(report, result)]
    for line in lines if verbose or not (named or like) else ():
        say(page, line, indent=indent)


def _unjudged(report: Report, page: Console, *, verbose: bool) -> None:
    """Print what was not judged, one entry per cause; what waits for a failure is only counted, unless `verbose`."""
    entries = unjudged(report)
    waiting = [] if verbose else [(cause, ids) for verdict, cause, ids in entries if verdict is Verdict.BLOCKED]
    if waiting:
        lines = [f"{len(ids)} until {one_line(cause, 200)} passes" for cause, ids in waiting]
        say(page, listed(lines, _CAUSES), lead="waiting: ")
    for verdict, cause, ids in entries:
        if verdict is Verdict.BLOCKED and not verbose:
            continue
        if verdict is Verdict.BLOCKED:
            text = f"{count(len(ids), 'clause')} not checked until {one_line(cause, 200)} passes: {listed(ids)}"
        else:
            text = f"{count(len(ids), 'clause')} not checked: {one_line(cause, _REASON)}"
        say(page, text, hang=_indent(page))
    if entries:
        page.print()


def _taken(report: Report, page: Console) -> None:
    """Print which binding clauses a declaration took away, where that counts."""
    if report.strict and report.exempted():
        by_key: dict[str, list[str]] = {}
        for result in report.exempted():
            by_key.setdefault(result.exempted_by, []).append(result.clause.id)
        for key, ids in by_key.items():
            say(
                page,
                f"{count(len(ids), 'clause')} skipped in full or in part because of {key}: {listed(ids)}",
                hang=_indent(page),
            )
        page.print()


def _missing(report: Report, page: Console) -> None:
    absent = [name for name in report.missing if name not in report.stubs and name not in report.unusable]
    for name in absent:
        text = (
            f"{one_line(name, 200)} is required by profile {report.profile}, and the implementation does not export it"
        )
        say(page, f"{text}; export it, or say in conform.toml where it is", lead="missing: ", style="red")
    if absent:
        say(page, "to judge only what is there, leave out its clauses: --without and a prefix, or --only")
    drafted = draft_command(report) if absent or report.unusable else ""
    if drafted:
        sentence = "what has another name, or is built or called otherwise, is looked for by"
        say(page, f"{sentence} {drafted}", lead="draft:   ")
    if absent or drafted:
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
        reason = f" ({one_line(result.reason, _REASON)})" if result.reason else ""
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
