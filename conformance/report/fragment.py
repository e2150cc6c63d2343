"""A report as a piece of a page, for notebooks: it takes their colors, and carries no style and no script."""

from __future__ import annotations

from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.pages import page
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.tally import tally
from conformkit.conformance.report.wording import failures, warns

__all__ = ["as_fragment"]


def as_fragment(report: Report) -> str:
    """Return the report as HTML without a head, cleaned and bounded like the JSON report."""
    found = from_object(as_object(report))
    return page(
        "fragment.html",
        report=found,
        tally=tally(found),
        warnings=[each for each in failures(found) if warns(found, each)],
    )
