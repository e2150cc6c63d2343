"""What the clauses cite, as data: read from `sources.md`, which says where to get it and what is public instead.

cited(text)         the sources that a text cites, with the sections it names
with_public(clause)  a clause's `Source:`, each private source followed by the public one that says the same
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from conformkit.spec.clauses import Clause

__all__ = ["NONE_KNOWN", "Citation", "Row", "Source", "SourceSyntaxError", "cited", "parse", "sources", "with_public"]

NONE_KNOWN = "none known"
"""How a row begins that has no public source."""

_LOCATOR = re.compile(r"§\d+(?:\.\d+)*|appendix [A-Z]|chapter \d+|checklist|reports?\b")


@dataclass(frozen=True, slots=True)
class Row:
    """What sections of a private source say, and where a public source says the same.

    `wanted` holds documents of the law and beginnings of clause ids to which the row is restricted; empty for all.
    """

    sections: tuple[str, ...]
    says: str
    wanted: tuple[str, ...]
    public: str
    line: int

    def rank(self, clause: Clause) -> int:
        """Return how closely the row fits a clause: 3 by id, 2 by document, 1 as any other row, 0 not at all."""
        if not self.wanted:
            return 1
        if any(clause.id == name or clause.id.startswith(f"{name}-") for name in self.wanted):
            return 3
        return 2 if clause.document in self.wanted else 0


@dataclass(frozen=True, slots=True)
class Source:
    """One source by its key. A private one has rows; a public one has a title and a place."""

    key: str
    title: str
    where: str
    rows: tuple[Row, ...] = ()

    @property
    def private(self) -> bool:
        """Whether readers outside the project can't get it."""
        return bool(self.rows)

    def row(self, section: str, clause: Clause) -> Row | None:
        """Return the row that fits a section, as this clause cites it, most closely; None if there is none."""
        fitting = [row for row in self.rows if section in row.sections and row.rank(clause)]
        return max(fitting, key=lambda row: row.rank(clause), default=None)


@dataclass(frozen=True, slots=True)
class Citation:
    """A source in the text of a citation: its key, and the sections that are named after it."""

    key: str
    sections: tuple[str, ...]


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
    """Return the sources of a document by key: rows of three cells, and headings `### key` with rows of four."""
    lines = text.splitlines()
    headings = [number for number, line in enumerate(lines) if line.startswith("### ")]
    found: dict[str, Source] = {}
    for number, cells in _table(lines, 0, headings[0] if headings else len(lines)):
        key, title, where = _exactly(3, cells, number)
        _add(found, Source(key, title, where), number)
    for start, end in zip(headings, [*headings[1:], len(lines)], strict=True):
        key = lines[start].removeprefix("### ").strip()
        title = " ".join(line for line in lines[start + 1 : end] if line and not line.startswith("|"))
        rows = tuple(_row(cells, number) for number, cells in _table(lines, start + 1, end))
        if not rows:
            raise SourceSyntaxError(start + 1, f"{key} has no rows")
        _add(found, Source(key, title, "private", rows), start + 1)
    return found


def _add(found: dict[str, Source], source: Source, line: int) -> None:
    if source.key in found:
        raise SourceSyntaxError(line, f"{source.key} is listed twice")
    found[source.key] = source


def _table(lines: list[str], start: int, end: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each row below a heading of a table and its rule."""
    inside = False
    for index in range(start, end):
        line = lines[index].strip()
        if inside and line.startswith("|"):
            yield index + 1, [cell.strip() for cell in line.strip("|").split("|")]
        else:
            inside = line.startswith("| ---")


def _exactly(count: int, cells: list[str], line: int) -> list[str]:
    if len(cells) != count:
        raise SourceSyntaxError(line, f"a row has {count} cells here, not {len(cells)}")
    return cells


def _row(cells: list[str], line: int) -> Row:
    sections, says, wanted, public = _exactly(4, cells, line)
    if not (sections and says and public):
        raise SourceSyntaxError(line, "only the cell 'for' may be empty")
    return Row(_items(sections), says, _items(wanted), public, line)


def _items(text: str) -> tuple[str, ...]:
    return tuple(item.strip() for item in text.split(",") if item.strip())


# --- citations --------------------------------------------------------------------------------------------------------


@cache
def _keys() -> re.Pattern[str]:
    """Return what finds a key, the longest first: one key may begin as another does."""
    names = "|".join(map(re.escape, sorted(sources(), key=len, reverse=True)))
    return re.compile(rf"(?<!\w)(?:{names})(?!\w)")


def cited(text: str) -> tuple[Citation, ...]:
    """Return the sources that a text cites, in its order. Sections belong to the key before them."""
    found = list(_keys().finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)] * bool(found)
    return tuple(
        Citation(match[0], tuple(_LOCATOR.findall(text[match.end() : end])))
        for match, end in zip(found, ends, strict=True)
    )


def with_public(clause: Clause) -> str:
    """Return what a clause cites; after each private source stands where a public one says the same."""
    parts, key = [], ""
    for part in clause.source.rstrip(".").split("; "):
        here = cited(part) or (Citation(key, tuple(_LOCATOR.findall(part))),)
        key = here[-1].key
        public = dict.fromkeys(text for citation in here for text in _public(citation, clause))
        parts.append(f"{part} (private; public: {'; '.join(public)})" if public else part)
    return f"{'; '.join(parts)}."


def _public(citation: Citation, clause: Clause) -> Iterator[str]:
    source = sources().get(citation.key)
    for section in citation.sections if source else ():
        if source and (row := source.row(section, clause)):
            yield row.public
