"""README.md, made from what the folders say: `python -m tests.real_bugs.table` writes it anew."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from conformkit.spec.clauses import Level, clauses_of

__all__ = ["LEFT_OUT", "binding", "bugs", "is_named", "page", "rows_of"]

HERE = Path(__file__).parent
LEFT_OUT = {
    18: "about one kernel of torch, compiled by inductor",
    55: "windows are causal: no variant looks ahead by a number of positions",
    81: "accuracy is no tool of the contract",
    83: "chat templates are outside the law",
    86: "groups of parameters are the user's",
    121: "low-rank adapters are told and not judged: no contract says at which rank and scale",
    125: "how often a schedule steps is the user's loop", 126: "groups of parameters are the user's",
    127: "checkpoints of a schedule are no tool of the contract", 129: "load_checkpoint gets plain models",
}  # fmt: skip
"""Rows of the list without a package, and why."""


def bugs() -> list[dict[str, Any]]:
    """Return what each folder says of its mistake, by row."""
    found = [
        {"folder": file.parent, **tomllib.loads(file.read_text(encoding="utf-8"))} for file in HERE.glob("*/bug.toml")
    ]
    return sorted(found, key=lambda bug: bug["row"])


def rows_of(bug: dict[str, Any]) -> list[int]:
    """Return the rows that it stands for: its own, and those in which others made the same mistake."""
    return [bug["row"], *bug.get("alike", ())]


def binding(bug: dict[str, Any]) -> bool:
    """Whether `conform port`, or a clause that is a MUST, catches it."""
    law = clauses_of(bug.get("profile", "core"))
    return "like" in bug or any(law[name].level is Level.MUST for name in bug["clauses"])


def is_named(bug: dict[str, Any]) -> bool:
    """Whether a known mistake is named, the tensor and its line, or how the numbers are related."""
    return bool(bug.get("named") or "line" in bug or "relation" in bug)


def page() -> str:
    """Return the text of README.md."""
    every = {row: bug for bug in bugs() for row in rows_of(bug)}
    must = sum(binding(bug) for bug in every.values())
    named = sum(is_named(bug) for bug in every.values())
    lines = [_line(row, every[row]) for row in sorted(every)]
    left = [f"| {row} | {why} |" for row, why in sorted(LEFT_OUT.items())]
    return _PAGE.format(
        rows=len(every) + len(LEFT_OUT), covered=len(every), must=must, named=named, table="\n".join(lines),
        left="\n".join(left),
    )  # fmt: skip


def _line(row: int, bug: dict[str, Any]) -> str:
    law = clauses_of(bug.get("profile", "core"))
    clauses = [name if law[name].level is Level.MUST else f"{name} (SHOULD)" for name in bug.get("clauses", ())]
    caught = ", ".join(clauses) or "`conform port`"
    other = "tensor and line" if "line" in bug else f"“{bug['relation']}”" if "relation" in bug else "—"
    named = ", ".join(f"`{name}`" for name in bug.get("named", ())) or other
    threads = ", ".join(_linked(thread) for thread in bug["threads"])
    return f"| {row} | `{bug['folder'].name}` | {bug['mistake']} | {caught} | {named} | {threads} |"


def _linked(thread: str) -> str:
    repository, _, number = thread.partition(" #")
    return f"[{thread}](https://github.com/{repository}/issues/{number})"


_PAGE = """\
# Mistakes found in real libraries

Each folder is a small package of our own that makes a mistake which people met in a released library or in research
code; nothing is copied. Most change one place of `right_code.py`, `right_paths.py` or `right_attention.py`. `bug.toml`
gives the threads where it was reported, the clauses that catch it, and the known mistakes of which a report names at
least one; for devices, the words of the message and the line that it quotes. Where several known mistakes fit what is
red, a report names up to three. Some were made in other languages than Python: the package makes the same mistake.

Of {rows} such reports {covered} have a package: {must} are caught by a binding clause or by `conform port`, the others
by a SHOULD; {named} are named. Tests hold this page, and `python -m tests.real_bugs.table` writes it anew.

| row | folder | mistake | caught by | named as | threads |
| --- | --- | --- | --- | --- | --- |
{table}

## Not covered

| row | why |
| --- | --- |
{left}
"""


if __name__ == "__main__":
    (HERE / "README.md").write_text(page(), encoding="utf-8")
