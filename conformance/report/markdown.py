"""A report as Markdown, for pull requests, job summaries and issue trackers.

Text that an implementation can influence is written as code, between more backticks than it contains: nothing in it
becomes a link, a mention, a picture or markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.conformance.report.causes import briefly, certainly, facts, is_named, leads, likely_cause, same_cause
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.wording import (
    HIDDEN,
    command,
    each_once,
    excuse_lines,
    failures,
    ledger_line,
    page_of,
    undeclared_line,
    unjudged,
    verdict_line,
    warned,
    way,
)
from conformkit.conformance.text import count, one_line

__all__ = ["as_markdown", "block", "body", "code", "escape", "failure"]

IN_FULL = 20
"""Maximum number of failures shown in full; the others by id and title, since nobody reads hundreds."""

_SPECIAL = re.compile(r"([\\`*_\[\]#|~$<>&@])")


def as_markdown(report: Report) -> str:
    """Return the report as a complete Markdown document."""
    found = from_object(as_object(report))
    return f"# Conformance of {code(found.implementation)}\n\n{body(found)}"


def body(report: Report, level: int = 2) -> str:
    """Return the text below the title, with headings from that level on; the report was read from JSON."""
    mark = "✅" if report.conforms else "⚠️" if report.settled else "❌"
    parts = [f"{mark} {code(verdict_line(report))}", escape(ledger_line(report)) + "."]
    parts += [f"> {escape(HIDDEN.capitalize())}."] if report.hidden else []
    parts += [_way(report, level)]
    parts += [_list("Cannot be judged", [_unusable(name, why) for why, name in each_once(report.unusable)], level)]
    parts += [_list("Undeclared", [code(undeclared_line(found)) for found in report.undeclared], level)]
    found = [f"**{escape(name)}**: {code(sentence)}" for name, sentence in leads(report).items()]
    parts += [_list("Where to look first", found, level)]
    parts += _failures(report, level)
    parts += [_list("Declared", [code(line) for line in excuse_lines(report)], level)]
    parts += [_list("Not judged", [_cause(*entry) for entry in unjudged(report)], level)]
    parts += [_list("Missing", [code(name) for name in report.missing], level)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _unusable(name: str, why: Unusable) -> str:
    """Return why a part cannot be judged, and what to declare, in one line."""
    place = f" ({code(why.where)})" if why.where else ""
    return f"{code(name)}: {code(why.problem)}{place}; {'; '.join(code(line.strip()) for line in why.advice)}"


def escape(text: str) -> str:
    """Return a line of the kit's own text with markup escaped; code in backticks stays code."""
    parts = one_line(text, 2000).split("`")
    if len(parts) % 2 == 0:  # an unmatched backtick
        return _SPECIAL.sub(r"\\\1", "`".join(parts))
    return "".join(code(part) if number % 2 else _SPECIAL.sub(r"\\\1", part) for number, part in enumerate(parts))


def code(text: str) -> str:
    """Return foreign text as a code span on one line."""
    inner = one_line(text, 2000) or " "
    fence = "`" * (_longest_run(inner) + 1)
    pad = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{fence}{pad}{inner}{pad}{fence}"


def block(text: str) -> str:
    """Return foreign text as a fenced block of code."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _way(report: Report, level: int) -> str:
    """Return the progress of an unfinished implementation, and what comes next."""
    found = way(report)
    if found is None:
        return ""
    so_far = [f"**{one.name}**: {one.state}" for one in found.milestones]
    return _list("So far", [*so_far, f"**next**: {code(found.next)}", f"**again**: {code(found.again)}"], level)


def _failures(report: Report, level: int) -> list[str]:
    soft = warned(report)
    red = [r for r in failures(report) if r.clause.id not in soft and not report.accepted(r)]
    known = [_happened(report, result) for result in failures(report) if report.accepted(result)]
    warnings = [result for result in failures(report) if result.clause.id in soft]
    lines = [_happened(report, result) for result in warnings]
    said = [_list(f"Known failures, in {report.baseline}", known, level)]
    said += [_list("Warnings, which do not change the verdict", lines, level)]
    return [*_binding(report, red, level), *said] if red else said


def _binding(report: Report, red: Sequence[Result], level: int) -> list[str]:
    same = same_cause(report, red)
    lines = [failure(report, result, level + 1, same.get(result.clause.id, "")) for result in red[:IN_FULL]]
    rest = [_happened(report, result) for result in red[IN_FULL:]]
    more = "\n".join([f"And {len(rest)} more:\n", *(f"- {line}" for line in rest)]) if rest else ""
    return [f"{'#' * level} What fails", *lines, more]


def failure(report: Report, result: Result, level: int, like: str = "") -> str:
    """Return all about one red clause below a heading of that level; `like` is one above with the same mistake."""
    word = str(result.verdict) if report.breaks(result) else "warning"
    head = f"{'#' * level} {word}: {_happened(report, result)}"
    sure = certainly(result) if is_named(result) and report.hints >= 3 and result.message else ""
    said = "\n".join(line for line in (f"{result.message}{sure}", *result.details) if line)
    first = (
        f"**The same mistake as in {code(like)}, above.**"
        if like
        else "\n".join(f"- **{label.rstrip(':')}**: **{escape(fact)}**" for label, fact in likely_cause(report, result))
    )
    named = [f"- **{label.rstrip(':')}**: {_fact(label, fact)}" for label, fact in facts(report, result)]
    address = page_of(report, result.clause.id)
    named += [f"- **page**: <{address}>"] if address else []
    named += [f"- **rule**: {escape(result.clause.title)}", f"- **again**: {code(command(report, result.clause.id))}"]
    printed = f"Printed during the call:\n\n{block(result.output)}" if result.output else ""
    parts = [head, first, block(said) if said else "", "\n".join(named), printed]
    return "\n\n".join(part for part in parts if part)


def _happened(report: Report, result: Result) -> str:
    """Return the id and what happened; a message may hold words of the implementation, and is code."""
    what = briefly(report, result)
    ours = is_named(result) or what == result.clause.title
    return f"{code(result.clause.id)} {escape(what) if ours else code(what)}"


def _cause(verdict: Verdict, cause: str, ids: list[str]) -> str:
    clauses = count(len(ids), "clause")
    if verdict is Verdict.BLOCKED:
        return f"{clauses} not checked until {code(cause)} passes"
    return f"{clauses} not checked: {code(cause)}"


def _fact(label: str, fact: str) -> str:
    return code(fact) if label == "where:" else escape(fact)


def _list(title: str, lines: list[str], level: int) -> str:
    return "\n".join([f"{'#' * level} {title}\n", *(f"- {line}" for line in lines)]) if lines else ""


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)
