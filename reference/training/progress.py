"""Progress of training: a line for each evaluation, and in a terminal a bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from conformkit.reference.training.loop import Listener, Measured

__all__ = ["Silent", "watching"]

NARROW = 60
"""Columns below which a bar shows the least."""


class Silent:
    """A listener that says nothing."""

    def measured(self, last: Measured) -> None:
        """Say nothing."""

    def evaluated(self, step: int, loss: float, *, best: bool) -> None:
        """Say nothing."""


@contextmanager
def watching(lines: Console | None, bar: Console, steps: int, done: int = 0) -> Iterator[Listener]:
    """Yield a listener that prints a line per evaluation to `lines`, and draws a bar on `bar` if it is a terminal."""
    progress = Progress(*_columns(bar.width), console=bar, transient=True, disable=not bar.is_terminal)
    with progress:
        yield _Watcher(lines, progress, steps, done)


class _Watcher:
    def __init__(self, lines: Console | None, progress: Progress, steps: int, done: int) -> None:
        self.lines, self.progress, self.steps = lines, progress, steps
        self.task = progress.add_task("", total=steps, completed=done, loss="", speed="")
        self.last: Measured | None = None

    def measured(self, last: Measured) -> None:
        self.last = last
        speed = f"{last.speed:,.0f} {last.unit}/s"
        self.progress.update(self.task, completed=last.step, loss=f"loss {last.loss:.3f}", speed=speed)

    def evaluated(self, step: int, loss: float, *, best: bool) -> None:
        if self.lines is None:
            return
        parts = [f"step {step:>{len(str(self.steps))}}/{self.steps}", f"validation {loss:.4f}"]
        if self.last is not None:
            parts += [f"training {self.last.loss:.4f}", f"{self.last.speed:,.0f} {self.last.unit}/s"]
        parts += ["best"] if best else []
        both = self.lines.is_terminal and self.progress.console.is_terminal  # then lines go above the bar
        console = self.progress.console if both else self.lines
        console.print(" · ".join(parts), markup=False, highlight=False, soft_wrap=not both)


class _Remaining(ProgressColumn):
    """The time that is left."""

    def render(self, task: Task) -> Text:
        left = task.time_remaining
        return Text("" if left is None else f"{_clock(left)} left")


def _columns(width: int) -> list[ProgressColumn]:
    loss, speed = TextColumn("{task.fields[loss]}", markup=False), TextColumn("{task.fields[speed]}", markup=False)
    if width < NARROW:
        return [MofNCompleteColumn(), loss]
    return [BarColumn(bar_width=None), MofNCompleteColumn(), loss, speed, _Remaining()]


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
