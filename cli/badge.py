"""`conform badge`: a badge from the JSON report of a run."""

from __future__ import annotations

from typing import Annotated

import typer

from conformkit.cli.exits import wrong
from conformkit.cli.reports import print_utf8, read_report

__all__ = ["badge"]


def badge(
    report: Annotated[str, typer.Argument(metavar="REPORT", help="The JSON report of conform run; - is stdin.")],
    label: Annotated[str, typer.Option(metavar="TEXT", help="The text on the left.")] = "conformance",
) -> None:
    """Print a badge as SVG, from what conform run --json wrote.

    Examples:
      conform badge report.json > badge.svg
      conform run mypkg --json - | conform badge - > badge.svg
    """
    found = read_report(report, "REPORT")
    from conformkit.conformance.report.badge import as_badge

    try:
        drawn = as_badge(found, label)
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError) as error:
        wrong("REPORT", f"{report} is not a report of conform run: {type(error).__name__}: {error}.")
    print_utf8(drawn)
