"""How an entry is written in MyST Markdown: an anchor, a heading, prose shown unchanged, fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

__all__ = [
    "code",
    "document",
    "entry",
    "fields",
    "mistake",
    "prose",
    "to_clause",
    "to_clauses",
    "to_erratum",
    "to_mistake",
]

_SPECIAL = re.compile(r"([\\<>\[\]_#$|~{}])")
_CODE = re.compile(r"(`[^`]+`)")


def prose(text: str) -> str:
    """Return prose of the law: `code` and *emphasis* keep their meaning, all other markup is escaped."""
    parts = _CODE.split(" ".join(text.split()))
    return "".join(part if _CODE.fullmatch(part) else _SPECIAL.sub(r"\\\1", part) for part in parts)


def code(text: str, language: str) -> str:
    """Return a block of code, fenced by more backticks than it contains."""
    longest = max((len(ticks) for ticks in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def entry(anchor: str, heading: str, *paragraphs: str, level: int = 2) -> str:
    """Return a link target: an anchor, a heading, and the text below."""
    below = "".join(f"\n{paragraph.rstrip()}\n" for paragraph in paragraphs if paragraph)
    return f"({anchor})=\n{'#' * level} {prose(heading)}\n{below}"


def fields(values: Mapping[str, str]) -> str:
    """Return names with their values, without empty ones."""
    return "\n".join(f":{name}: {value}" for name, value in values.items() if value)


def document(name: str) -> str:
    """Return the anchor of a document's page."""
    return f"document-{name.replace('_', '-')}"


def mistake(name: str) -> str:
    """Return the anchor of a known mistake; clauses have the shorter one, their id."""
    return f"mistake-{name.lower()}"


def to_clause(name: str) -> str:
    """Return a link to a clause."""
    return f"[{name}](#{name.lower()})"


def to_clauses(names: Iterable[str]) -> str:
    """Return links to clauses."""
    return ", ".join(map(to_clause, names))


def to_mistake(name: str, title: str) -> str:
    """Return a link to a known mistake."""
    return f"[{prose(title)}](#{mistake(name)})"


def to_erratum(name: str, title: str) -> str:
    """Return a link to an erratum."""
    return f"[{name}](#{name.lower()}): {prose(title)}"
