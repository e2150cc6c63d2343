"""The bar on stderr while a run goes on; nothing where nobody watches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from conformkit.conformance.engine.results import Result
from conformkit.conformance.text import one_line

__all__ = ["Step", "bar"]


class Step(Protocol):
    """How far a run is."""

    @property
    def done(self) -> int:
        """Clauses judged."""

    @property
    def total(self) -> int:
        """Clauses to judge."""

    @property
    def clause_id(self) -> str:
        """The clause under way."""

    @property
    def last(self) -> Result | None:
        """The newest result."""


@contextmanager
def bar(page: Console, *, visible: bool) -> Iterator[Callable[[Step], None] | None]:
    """Yield what a run calls after each step, or None where no bar is wanted. The bar is gone at the end."""
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
    with Progress(*columns, console=page, transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def step(now: Step) -> None:
            nonlocal red
            red += now.last is not None and now.last.verdict.red
            words = one_line(now.clause_id, 60) + (f", {red} red" if red else "")
            progress.update(task, completed=now.done, total=now.total, description=words)

        yield step
