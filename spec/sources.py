"""What the clauses cite, as data: read from `sources.md`, which says where to get it.

cited(text)    the sources that a text names
public(texts)  those of several citations that every reader can get
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

__all__ = ["Source", "SourceSyntaxError", "cited", "parse", "public", "sources"]


@dataclass(frozen=True, slots=True)
class Source:
    """One source by its key: what it is, and where to get it."""

    key: str
    title: str
    where: str

    @property
    def private(self) -> bool:
        """Whether readers outside the project can't get it."""
        return self.where == "private"


class SourceSyntaxError(ValueError):
    """The list of sources breaks the form that its introduction describes."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"sources.md, line {line}: {problem}")
        self.line, self.problem = line, problem


@cache
def sources() -> Mapping[str, Source]:
    """Return all sources by key, in the order in which the document gives them."""
    return parse(files(__package__).joinpath("sources.md").read_text(encoding="utf-8"))


def parse(text: str) -> Mapping[str, Source]:
    """Return the sources of a document by key, from its tables of three columns: key, title, where."""
    found: dict[str, Source] = {}
    for line, cells in _rows(text.splitlines()):
        if len(cells) != len(("key", "title", "where")) or not all(cells):
            raise SourceSyntaxError(
                line, f"a row is a key, a title and a place, not {len([*filter(None, cells)])} cells"
            )
        if cells[0] in found:
            raise SourceSyntaxError(line, f"{cells[0]} is listed twice")
        found[cells[0]] = Source(*cells)
    return found


def _rows(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each row below the heading of a table and its rule."""
    inside = False
    for number, line in enumerate(lines, start=1):
        if inside and line.startswith("|"):
            yield number, [cell.strip() for cell in line.strip("|").split("|")]
        else:
            inside = line.startswith("| ---")


@cache
def _keys() -> re.Pattern[str]:
    """Return what finds a key, the longest first: one key may begin as another does."""
    names = "|".join(map(re.escape, sorted(sources(), key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{names})(?!\w)")


def cited(text: str) -> tuple[str, ...]:
    """Return the keys of the sources that a text names, in its order."""
    return tuple(match[0] for match in _keys().finditer(text))


def public(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the citations of which every reader can get the source."""
    return tuple(text for text in texts if not any(sources()[key].private for key in cited(text)))
