"""`conform inspect RUN`: a training run, or a checkpoint of one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from conformkit.cli.exits import Exit, fail
from conformkit.cli.reports import STDOUT, write_files
from conformkit.cli.train import explained

if TYPE_CHECKING:
    from rich.console import Console

    from conformkit.conformance.report.terminal import Color
    from conformkit.reference.training.anatomy import HeadFacts
    from conformkit.reference.training.inspection import RunInspection

__all__ = ["inspect_run"]

_MAX_HEADS = 48
"""Most heads that are listed."""
_LEAST = 72
"""Columns of the table: on a narrower terminal its lines run on, and no number is cut."""


def inspect_run(run: Path, targets: Mapping[str, str], device: str, color: Color) -> NoReturn:
    """Print what a run's curves and its model show, and exit with the code."""
    if not run.exists():
        fail(Exit.USAGE, f"there is no {run}; name the folder of a run of conform train, or a checkpoint in it")
    from conformkit.conformance.report.json_text import json_text

    with explained():
        from conformkit.reference.training.inspection import inspect_run as look

        found = look(run, device)
    text = json_text(found.as_object())
    write_files(targets, lambda _: text)
    if STDOUT not in targets.values():
        from conformkit.conformance.report.terminal import console

        with contextlib.suppress(BrokenPipeError):
            _write(found, console(sys.stdout, color))
    raise typer.Exit(Exit.DIFFERS if found.findings else Exit.CONFORMS)


def _write(found: RunInspection, page: Console) -> None:
    from rich.text import Text

    from conformkit.conformance.text import one_line, plain

    page.print(Text(plain(f"{found.place}: {found.title or 'a training run'}, step {found.step}")))
    if found.parameters:
        page.print(Text(plain(f"{found.parameters:,} parameters; heads and units seen on {found.data}")))
    if found.evaluations:
        page.print(Text(_curve(found.evaluations)))
    if found.loss is not None and found.uniform is not None:
        page.print(Text(_compared(found.loss, found.uniform, found.floor)))
    if found.anatomy.heads:
        page.print()
        _write_heads(found.anatomy.heads, page)
    for one in found.anatomy.units:
        if one.dead:
            page.print(Text(f"{one_line(one.place)}: {one.dead} of {one.units} hidden units are dead"))
    page.print()
    if found.stopped is not None:
        reached, wanted = found.stopped
        page.print(
            Text(plain(f"stopped at step {reached:,} of {wanted:,}; continue: conform train --resume {found.place}"))
        )
    if not found.findings:
        whole = " so far" if found.stopped else ": the curves, the heads and the masks are as they should be"
        page.print(Text(f"Nothing stands out{whole}.", style="green"))
        return
    count = len(found.findings)
    page.print(Text(f"{count} thing{'' if count == 1 else 's'} to look at:", style="bold red"))
    for item in found.findings:
        page.print(Text(plain(f"  {item.name}: {item.problem}")))
        page.print(Text(f"      {item.advice}", style="dim"))


def _compared(loss: float, uniform: float, floor: float | None) -> str:
    """Return the loss of training beside that of knowing nothing, and the least that is possible."""
    least = f"; the least possible is {floor:.4f}" if floor is not None else ""
    return f"loss of the last steps: {loss:.4f}; all ids alike would give ln V = {uniform:.4f}{least}"


def _curve(evaluations: Sequence[tuple[int, float]]) -> str:
    """Return the validation loss in at most eight places: the first, the last, and the best among them."""
    best = min(range(len(evaluations)), key=lambda number: evaluations[number][1])
    last = len(evaluations) - 1
    shown = sorted({best, *(round(number * last / 6) for number in range(7))})
    parts = [f"{evaluations[n][1]:.4f} at {evaluations[n][0]}{' (best)' if n == best else ''}" for n in shown]
    return f"validation loss: {', '.join(parts)}"


def _write_heads(heads: Sequence[HeadFacts], page: Console) -> None:
    """Print a line for each head, as long as its numbers need."""
    page.print(_table(heads), width=max(page.width, _LEAST), crop=False)


def _table(heads: Sequence[HeadFacts]) -> object:
    from rich.table import Table

    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    table.add_column("attention", no_wrap=True)
    for heading in ("entropy", "of at most", "distance", "unlike others", "on the first", "share"):
        table.add_column(heading, justify="right", min_width=6)
    for one in heads[:_MAX_HEADS]:
        table.add_row(
            one.place, f"{one.entropy:.2f}", f"{one.most:.2f}", "" if one.distance is None else f"{one.distance:.1f}",
            "" if one.unlike is None else f"{one.unlike:.2f}", f"{one.first:.2f}", f"{one.share:.2f}",
        )  # fmt: skip
    if len(heads) > _MAX_HEADS:
        table.add_row(f"… and {len(heads) - _MAX_HEADS} more: --json lists all")
    return table
