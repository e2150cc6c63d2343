"""An excerpt of two arrays as cells of three pictures: output, wanted, difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from conformkit.conformance.assertions.excerpts import Excerpt

__all__ = ["Cell", "Panel", "legend", "panels", "place"]

Rows = Sequence[Sequence[float]]
Marks = Sequence[Sequence[bool]]

_DARKEST = 0.95
_FAINTEST = 0.05
"""Minimum strength of the color of a number other than 0."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One entry: its place in the picture, its sign as a word, the strength of its color, whether it is too far off.

    `hidden`: whether a mask hides it.
    """

    row: int
    column: int
    kind: str
    strength: float
    value: float
    off: bool
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture, and its description in words."""

    name: str
    told: str
    rows: int
    columns: int
    cells: tuple[Cell, ...]


def panels(shown: Excerpt) -> tuple[Panel, Panel, Panel]:
    """Return the three pictures; the first two share one color scale."""
    difference = [[g - w for g, w in zip(*rows, strict=True)] for rows in zip(shown.got, shown.want, strict=True)]
    off = [[not abs(value) <= shown.allowed for value in row] for row in difference]
    scale = max(map(abs, _finite([*shown.got, *shown.want])), default=0.0)
    apart = max(map(abs, _finite(difference)), default=0.0)
    nothing = [[False] * len(row) for row in off]
    hidden = shown.hidden or nothing
    return (
        _panel("yours", shown.got, scale, off, hidden), _panel("wanted", shown.want, scale, nothing, hidden),
        _panel("difference", difference, apart, off, nothing),
    )  # fmt: skip


def place(shown: Excerpt) -> str:
    """Return which part of the array is shown, counted from 0."""
    shape = " × ".join(map(str, shown.shape))
    rows, columns = len(shown.got), len(shown.got[0])
    whole = shown.shape[-2:] == (rows, columns) or shown.shape == (columns,)
    part = [f"of {shape} entries"]
    if len(shown.shape) > 2:
        part.append(f"matrix [{', '.join(map(str, shown.at[:-2]))}]")
    if not whole:
        row, column = shown.first
        part.append(f"rows {row} to {row + rows - 1}, columns {column} to {column + columns - 1}")
    return ", ".join(part)


def legend(shown: Excerpt) -> str:
    """Return the meaning of colors and marks."""
    colors = "Blue is above 0, red below, empty exactly 0; a dot marks what is too far off."
    hatched = "Rows attend to columns: hatched is what the mask hides, framed what is visible although hidden."
    return f"{colors} {hatched}" if shown.hidden else colors


def _panel(name: str, rows: Rows, scale: float, off: Marks, hidden: Marks) -> Panel:
    cells = tuple(
        Cell(r, c, _kind(value), _strength(value, scale), value, off[r][c], hidden[r][c])
        for r, row in enumerate(rows)
        for c, value in enumerate(row)
    )
    values = _finite(rows)
    span = f"from {min(values):.3g} to {max(values):.3g}" if values else "none of them is finite"
    sentence = f"{len(rows)} by {len(rows[0])} numbers, {span}"
    return Panel(name, sentence + _marks(cells), len(rows), len(rows[0]), cells)


def _marks(cells: Sequence[Cell]) -> str:
    """Return in words how many are too far off, how many the mask hides, and how many of those are visible."""
    wrong, hidden = sum(cell.off for cell in cells), sum(cell.hidden for cell in cells)
    sentence = f", {wrong} of them too far off" if wrong else ""
    if hidden:
        shows = sum(cell.hidden and cell.off for cell in cells)
        sentence += f"; the mask hides {hidden}" + (f", of which {shows} are visible" if shows else "")
    return sentence


def _kind(value: float) -> str:
    if not math.isfinite(value):
        return "odd"
    return "zero" if value == 0.0 else "positive" if value > 0.0 else "negative"


def _strength(value: float, scale: float) -> float:
    if not math.isfinite(value) or scale == 0.0:
        return 1.0
    return _FAINTEST + (_DARKEST - _FAINTEST) * min(1.0, abs(value) / scale)


def _finite(rows: Sequence[Sequence[float]]) -> list[float]:
    return [value for row in rows for value in row if math.isfinite(value)]
