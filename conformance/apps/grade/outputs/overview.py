"""The class on one page, for the instructor: scores, most frequent failures, and what needs attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformkit.conformance.apps.grade.outputs import wording
from conformkit.conformance.apps.grade.outputs.statistics import Bin, figures
from conformkit.conformance.apps.grade.outputs.student import TEMPLATES
from conformkit.conformance.apps.grade.record import Grade, SubmissionOutcome
from conformkit.conformance.report.pages import page

__all__ = ["Bar", "as_overview", "bars"]

WIDTH, HEIGHT, FLOOR, TOP = 480, 190, 160, 20
"""The size of the picture, and the position of its bars."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of the histogram."""

    bin: Bin
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Horizontal position of its labels."""
        return self.x + self.width / 2


def as_overview(grades: Sequence[Grade], title: str = "") -> str:
    """Return a page of one file, with links to the students' pages next to it."""
    found = figures(grades)
    return page(
        "overview.html", TEMPLATES, grades=grades, title=title, figures=found, bars=bars(found.bins), told=wording,
        picture={"width": WIDTH, "height": HEIGHT, "floor": FLOOR},
        troubled=[grade for grade in grades if grade.outcome is not SubmissionOutcome.JUDGED],
        advised=[grade for grade in grades if grade.libraries],
        declaring=[grade for grade in grades if grade.declarations],
    )  # fmt: skip


def bars(bins: Sequence[Bin]) -> list[Bar]:
    """Return the bars of a histogram; the tallest fills the height."""
    most = max((one.count for one in bins), default=0) or 1
    step = WIDTH / max(len(bins), 1)
    heights = [(FLOOR - TOP) * one.count / most for one in bins]
    return [
        Bar(one, n * step + 2, FLOOR - height, step - 4, height)
        for n, (one, height) in enumerate(zip(bins, heights, strict=True))
    ]
