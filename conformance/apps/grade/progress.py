"""Progress on stderr while a class is graded: a bar on a terminal, else one line per submission."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from conformkit.conformance.apps.grade.grade import GradingProgress
from conformkit.conformance.apps.grade.record import Grade, SubmissionOutcome
from conformkit.conformance.text import listed, number, one_line

__all__ = ["points", "watched"]

_SHOWN = 4
_WIDEST = 24


@contextmanager
def watched(page: Console, *, bar: bool, quiet: bool) -> Iterator[Callable[[GradingProgress], None]]:
    """Yield the progress callback of a run."""
    if quiet or not bar:
        yield (lambda _: None) if quiet else (lambda now: _line(page, now))
        return
    columns = (
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=page, transient=True) as shown:
        task = shown.add_task("starting", total=None)
        yield lambda now: _move(shown, task, now)


def points(grade: Grade) -> str:
    """Return `87.5 of 100`, with the outcome if it was not judged."""
    text = f"{number(grade.points)} of {number(grade.max_points)}"
    return text if grade.outcome is SubmissionOutcome.JUDGED else f"{text} ({grade.outcome})"


def _move(shown: Bar, task: TaskID, now: GradingProgress) -> None:
    running = listed([_short(name) for name in now.running], _SHOWN)
    shown.update(task, completed=now.done, total=now.total, description=running)


def _line(page: Console, now: GradingProgress) -> None:
    if now.last is not None:
        name = one_line(now.last.submission.name, 60)
        page.print(Text(f"[{now.done}/{now.total}] {name}: {points(now.last)}"), soft_wrap=True)


def _short(name: str) -> str:
    text = one_line(name, 200)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"
