"""A badge for a README: a self-contained SVG that loads nothing and runs nothing."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.junit import safe
from conformkit.conformance.report.score import RunOutcome, outcome
from conformkit.conformance.report.wording import obstacles, scope, seed_line, share
from conformkit.conformance.text import one_line

__all__ = ["as_badge"]

_CHARACTER, _PADDING = 6.6, 12
"""Approximate width of a character at this size; `textLength` makes the text fit exactly in any font."""
_RED = "#b42318"
_COLORS = {RunOutcome.CONFORMS: "#1a7f37", RunOutcome.NOT_JUDGED: "#6b5900"}
"""Dark enough for white text: contrast above 4.5."""
_LONGEST = 90

_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label={spoken}>
  <title>{title}</title>
  <rect width="{width}" height="20" rx="3" fill="#444"/>
  <path d="M{left} 0h{gap}a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3h-{gap}z" fill="{color}"/>
  <g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">
    <text x="{at_label}" y="14" textLength="{label_length}">{label}</text>
    <text x="{at_message}" y="14" textLength="{message_length}">{message}</text>
  </g>
</svg>
"""


def as_badge(report: Report, label: str = "conformance") -> str:
    """Return the badge of a report: what was judged, whether it conforms, on which inputs and when."""
    said = outcome(report)
    if report.conforms:
        words = f"{'conforms' if said is RunOutcome.CONFORMS else 'nothing wrong found'}{share(report)}"
    else:
        words = f"{'not judged: ' if said is RunOutcome.NOT_JUDGED else ''}{obstacles(report, most=0)[0]}"
    words += f", seed {seed_line(report)}{f', {report.date}' if report.date else ''}"
    message, label = (safe(one_line(text, _LONGEST)) for text in (f"{scope(report)}: {words}", label))
    label_length, message_length = (round(_CHARACTER * len(text)) for text in (label, message))
    left, right = label_length + _PADDING, message_length + _PADDING
    spoken = f"{label}: {message}"
    return _SVG.format(
        width=left + right, left=left, gap=right - 3, color=_COLORS.get(said, _RED),
        at_label=left / 2, at_message=left + right / 2, label_length=label_length, message_length=message_length,
        label=escape(label), message=escape(message), title=escape(spoken), spoken=quoteattr(spoken),
    )  # fmt: skip
