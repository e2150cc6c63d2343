"""A report as a page: one file for a browser, readable on a phone, by keyboard and by screen reader."""

from __future__ import annotations

from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.pages import page
from conformkit.conformance.report.stored import from_object

__all__ = ["as_html"]


def as_html(report: Report) -> str:
    """Return the report as an HTML document with the content of the JSON report, cleaned and bounded like that."""
    return page("report.html", report=from_object(as_object(report)))
