"""`conform explain`: one clause, with its reason and what to do when it fails."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator
from typing import Annotated

import typer

from conformkit.cli.spec import chosen, listing
from conformkit.spec.clauses import Clause

__all__ = ["explain"]


def explain(
    ids: Annotated[list[str], typer.Argument(metavar="ID", help="Clauses, or prefixes, which list theirs.")],
) -> None:
    """Explain clauses, or list those of a prefix.

    What each says, why, and how to mend what breaks it.
    """
    width = min(shutil.get_terminal_size().columns, 100)
    pages: list[str] = []
    for wanted in (word for item in ids for word in item.split(",") if word):
        found = chosen([wanted])
        exact = [clause for clause in found if clause.id == wanted.upper()]
        pages.append("\n".join(_page(exact[0], width) if exact else listing(found, width)))
    print("\n\n".join(pages))


def _page(clause: Clause, width: int) -> Iterator[str]:
    yield from textwrap.wrap(f"{clause.id} · {clause.title}", width, break_on_hyphens=False)
    yield ""
    applies = ", ".join(f"{name} = {value}" for name, value in clause.applies.items())
    facts = {
        "normative": clause.normative, "why": clause.why, "fix": clause.fix, "level": clause.level,
        "component": clause.component, "profile": f"{clause.profile}, since {clause.since}",
        "evidence": ", ".join(clause.evidence), "applies": applies and f"when {applies}",
        "needs": ", ".join(clause.needs), "source": clause.source,
    }  # fmt: skip
    for name, value in facts.items():
        if value:
            yield from textwrap.wrap(
                value, width, initial_indent=f"{name + ':':<11}", subsequent_indent=" " * 11, break_on_hyphens=False
            )
