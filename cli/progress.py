"""A progress bar on stderr for commands that take more than two seconds; nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar", "spinner"]


@contextmanager
def spinner(what: str) -> Iterator[None]:
    """Show on a terminal what is being done, as long as it takes, where nobody knows how long that is."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    from conformkit.conformance.report.terminal import console
    from conformkit.conformance.text import one_line

    with console(sys.stderr).status(Text(one_line(what, 60))):
        yield


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """Yield a function that is told how much is done, and out of how much; it shows that if stderr is a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from conformkit.conformance.report.terminal import console

    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    page = console(sys.stderr)
    with Progress(*columns, console=page, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
