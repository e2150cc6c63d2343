"""`conform spec`: the law, clause by clause."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from conformkit.cli.exits import Exit, fail, no_room, wrong
from conformkit.spec.clauses import Clause, UnknownClauseError, select

__all__ = ["chosen", "listing", "spec"]


def spec(
    prefixes: Annotated[
        list[str] | None, typer.Argument(metavar="PREFIX", help="Only clauses whose ids begin with it, e.g. SDPA.")
    ] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print every field of every clause as JSON.")] = False,
    html: Annotated[
        str, typer.Option("--html", metavar="DIR", help="Write the whole law and the known mistakes as HTML pages.")
    ] = "",
) -> None:
    """List the clauses by document, or write them as pages for a browser.

    Examples:
      conform spec SDPA
      conform spec --html pages
    """
    if html:
        if prefixes or as_json:
            wrong("--html", "writes the whole law; leave out PREFIX and --json.")
        _write_pages(Path(html))
        return
    found = chosen(prefixes or [])
    if as_json:
        print(json.dumps([_fields(clause) for clause in found], indent=2, ensure_ascii=False))
        return
    print("\n".join(listing(found, shutil.get_terminal_size().columns)))


def chosen(prefixes: Sequence[str]) -> tuple[Clause, ...]:
    """Return the clauses that these prefixes select, commas allowed; exit with code 2 if one selects none."""
    try:
        return select(tuple(word for prefix in prefixes for word in prefix.split(",") if word))
    except UnknownClauseError as error:
        wrong("PREFIX", f"{error}.")


def listing(clauses: Sequence[Clause], width: int) -> Iterator[str]:
    """Yield the lines of a list that stays readable in narrow terminals."""
    room = max((len(clause.id) for clause in clauses), default=0)
    narrow = width < room + 40
    for number, ((document, component), group) in enumerate(groupby(clauses, lambda c: (c.document, c.component))):
        members = list(group)
        yield from [""] if number else []
        yield from textwrap.wrap(f"{document} · {component} ({len(members)})", width)
        for clause in members:
            head = f"  {clause.level:<6} {clause.id}" if narrow else f"  {clause.level:<6} {clause.id:<{room}}  "
            if narrow:
                yield head
            yield from textwrap.wrap(
                clause.title, max(width, 20), initial_indent=" " * 9 if narrow else head,
                subsequent_indent=" " * (9 if narrow else len(head)), break_on_hyphens=False,
            )  # fmt: skip


def _write_pages(folder: Path) -> None:
    if folder.exists():
        wrong("--html", f"{folder} exists; name a new folder.")
    try:
        from conformkit.conformance.apps.handbook.site import BuildError, build
    except ModuleNotFoundError as error:
        fail(Exit.USAGE, f"the pages need {error.name}, which is not installed", "pip install 'conformkit[docs]'")
    from conformkit.cli.progress import progress_bar

    try:
        with progress_bar("pages") as step:
            count = build(folder, on_page=step)
    except OSError as error:
        code = Exit.KIT_FAILED if no_room(error) else Exit.USAGE
        fail(code, f"can't write {folder}: {error.strerror or error}", "name a folder that you can write to")
    except BuildError as error:
        fail(Exit.KIT_FAILED, f"the pages are inconsistent: {error}", "this is a mistake of the kit: please report it")
    print(f"{count} pages in {folder}; start with {folder / 'index.html'}")


def _fields(clause: Clause) -> dict[str, Any]:
    return {
        name: dict(value) if name in {"applies", "sizes"} else value
        for name in Clause.__dataclass_fields__
        for value in [getattr(clause, name)]
    }
