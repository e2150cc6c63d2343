"""The progress bar on stderr during a run; nothing if stderr is not a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from conformkit.conformance.engine.collecting import Progress
from conformkit.conformance.text import one_line

__all__ = ["bar"]


@contextmanager
def bar(page: Console, *, visible: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Yield the callback for each step of a run, or None if no bar is wanted. The bar disappears at the end."""
    if not visible:
        yield None
        return
    columns = (
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
    )
    red = 0
    with Bar(*columns, console=page, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def step(now: Progress) -> None:
            nonlocal red
            red += now.last is not None and now.last.verdict.red
            words = one_line(now.clause_id, 60) + (f", {red} red" if red else "")
            progress.update(task, completed=now.done, total=now.total, description=words)

        yield step
