"""What a save did, for people: what was fixed, what broke, what still fails."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from conformkit.conformance.engine.results import Report, Result
from conformkit.conformance.report.terminal import say, write_milestones, write_some
from conformkit.conformance.report.wording import failures, ledger_line, verdict_line
from conformkit.conformance.text import count, listed, one_line

__all__ = ["write_change", "write_outcome", "write_rest", "write_verdict"]

_NAMED = 6
_IN_FULL = 3


def write_change(page: Console, when: str, files: Sequence[str], definitions: Sequence[str]) -> None:
    """Say what was saved."""
    named = ", ".join(one_line(name, 200) for name in files[:_NAMED])
    what = f": {', '.join(one_line(name, 60) for name in definitions[:_NAMED])}" if definitions else ""
    say(page, f"{when} {named or 'a file'} changed{what}", style="bold")


def write_outcome(page: Console, words: str, mended: Sequence[Result], broke: Sequence[Result]) -> None:
    """Print what is fixed and what broke among the clauses that `words` describes, and how the first of these fails."""
    say(page, words if mended or broke else f"{words}: nothing fixed, nothing broke")
    if mended:
        say(page, _ids(mended), style="green", lead="fixed:  ")
    if broke:
        say(page, _ids(broke), style="red", lead="broke:  ")
        say(page, one_line(broke[0].message, 300), indent=8)


def write_rest(page: Console, report: Report, broke: Sequence[Result], repeat: Sequence[str], seconds: float) -> None:
    """Print what fails, newly broken clauses first, and the verdict."""
    new = {result.clause.id for result in broke}
    red = sorted(failures(report), key=lambda r: (not report.breaks(r), r.clause.id not in new))
    binding = [result for result in red if report.breaks(result)]
    write_some(report, page, binding[:_IN_FULL], repeat)
    if binding[_IN_FULL:]:
        say(page, f"and {count(len(binding) - _IN_FULL, 'more clause')} failing: {_ids(binding[_IN_FULL:])}", hang=2)
    write_milestones(report, page)
    say(page, f"{ledger_line(report)} ({seconds:.1f} s)")
    write_verdict(page, report)


def write_verdict(page: Console, report: Report) -> None:
    """Print whether it conforms, and that watching continues."""
    say(page, verdict_line(report), style="bold green" if report.conforms else "bold red")
    say(page, "watching; Ctrl-C ends", style="dim")


def _ids(results: Sequence[Result]) -> str:
    return listed([result.clause.id for result in results], _NAMED)
