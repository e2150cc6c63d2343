"""The law as data: clauses are read from the `*.md` files next to this module, which are also documents for readers."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib.resources import files

from conformkit.spec.profiles import PROFILES, named_profile

__all__ = [
    "SPEC_VERSION", "STEMS", "Clause", "ClauseSyntaxError", "Level", "OutsideProfileError", "UnknownClauseError",
    "check_selection", "clause", "clauses", "clauses_of", "profiles_of", "select",
]  # fmt: skip

SPEC_VERSION = "1.0"

STEMS = tuple(dict.fromkeys(stem for one in PROFILES.values() if not one.selects for stem in one.documents))
"""All documents, in the order in which one builds a transformer, which is also the order of a run."""


class Level(StrEnum):
    """How binding a clause is (RFC 2119)."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"

    def includes(self, other: Level) -> bool:
        """Whether a clause of the other level binds where this one is asked for: each includes those above it."""
        order = list(Level)
        return order.index(other) <= order.index(self)


@dataclass(frozen=True, slots=True)
class Clause:
    """One normative statement.

    `applies` contains conditions on the variant and on the implementation's abilities (`{"placement": "pre"}`,
    `{"gradients": "yes"}`); `needs` lists the clauses that must hold before this one is meaningful.
    """

    id: str
    title: str
    normative: str
    why: str
    fix: str
    level: Level
    evidence: tuple[str, ...]
    profile: str
    since: str
    source: str
    component: str
    document: str
    line: int
    applies: Mapping[str, str]
    needs: tuple[str, ...]
    sizes: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The least and the largest of each size at which it is checked, if it speaks of every size."""
    private: str = ""
    """Where documents that only the kit's authors have say the same; empty if none does."""

    @property
    def prefix(self) -> str:
        """The id's first word: `SDPA` of `SDPA-SCALE`."""
        return self.id.partition("-")[0]

    @property
    def generates(self) -> bool:
        """Whether it is about generated text."""
        return self.applies.get("generate") == "yes"

    @property
    def domain(self) -> str:
        """Its sizes as a document writes them: `tokens 1–600, batch 1–64`."""
        return ", ".join(f"{name} {low}–{high}" for name, (low, high) in self.sizes.items())


class ClauseSyntaxError(ValueError):
    """A specification document violates the form that CONTRIBUTING.md describes."""

    def __init__(self, document: str, line: int, problem: str) -> None:
        super().__init__(f"{document}.md, line {line}: {problem}")
        self.document, self.line, self.problem = document, line, problem


class UnknownClauseError(KeyError):
    """No clause has this id or prefix."""

    def __init__(self, wanted: str, nearest: tuple[str, ...]) -> None:
        super().__init__(wanted)
        self.wanted, self.nearest = wanted, nearest

    def __str__(self) -> str:
        hint = f"; nearest: {', '.join(self.nearest)}" if self.nearest else ""
        return f"no clause is called {self.wanted}{hint} (conform spec lists all clauses)"


class OutsideProfileError(UnknownClauseError):
    """What a word selects is in none of the profiles that are asked for: it would be left out without a word."""

    def __init__(self, wanted: str, profile: str, homes: tuple[str, ...]) -> None:
        super().__init__(wanted, ())
        self.profile, self.homes = profile, homes

    def __str__(self) -> str:
        return f"{self.wanted} is not in profile {self.profile}, but in {' and '.join(self.homes)}"


_MARKS = ("## ", "### ", "Component: ")
"""Beginnings of lines that end a clause."""
_HEADING = re.compile(r"### ([A-Z0-9]+(?:-[A-Z0-9]+)+)$")
_FIELD = re.compile(r"(Normative|Why|Fix|Evidence|Applies|Sizes|Needs): ")
_SIZE = re.compile(r"(?P<name>[a-z_]+) (?P<low>[0-9]+)[–-](?P<high>[0-9]+)")
_FACTS = re.compile(
    r"Evidence: (?P<evidence>[a-z, ]+)\. Level: (?P<level>MUST|SHOULD|MAY)\. Profile: (?P<profile>[a-z0-9]+)\. "
    r"Since: (?P<since>[0-9.]+)\. Source: (?P<source>.+?)(?: Private: (?P<private>.+))?$"
)


@cache
def clauses() -> Mapping[str, Clause]:
    """Return all clauses by id, in the order of the documents."""
    return _joined(STEMS)


@cache
def clauses_of(profile: str) -> Mapping[str, Clause]:
    """Return the clauses of a profile, or of several, by id, without reading the documents of others.

    Raises ValueError if there is no such profile.
    """
    one = named_profile(profile)
    found = _joined(one.documents)
    return found if one.about is None else {name: item for name, item in found.items() if item.component in one.about}


def clause(clause_id: str) -> Clause:
    """Return the clause with that id; raise UnknownClauseError, which names the nearest ids, if there is none.

    Documents are read until one contains it.
    """
    name = clause_id.upper()
    for profile in PROFILES:
        if name in clauses_of(profile):
            return clauses_of(profile)[name]
    raise UnknownClauseError(clause_id, _nearest(clause_id))


@cache
def _joined(stems: tuple[str, ...]) -> Mapping[str, Clause]:
    found: dict[str, Clause] = {}
    for stem in stems:
        for item in _document(stem):
            if item.id in found:
                raise ClauseSyntaxError(stem, item.line, f"{item.id} is defined twice")
            found[item.id] = item
    return found


@cache
def _document(stem: str) -> tuple[Clause, ...]:
    return tuple(parse(stem, files(__package__).joinpath(f"{stem}.md").read_text(encoding="utf-8")))


def select(prefixes: tuple[str, ...], profile: str | None = None) -> tuple[Clause, ...]:
    """Return the clauses whose ids equal or begin with one of the prefixes; all clauses without prefixes.

    A whole id selects that clause alone, a component's name (`MultiHeadAttention`) all clauses about it. A prefix ends
    at a hyphen: `MASK` selects `MASK-NONE`, `MAS` raises. With a profile, only its clauses are returned.
    """
    if profile is None:
        return _selected(prefixes)
    if not prefixes:
        return tuple(clauses_of(profile).values())
    own = clauses_of(profile)
    return tuple(clause for clause in _selected(prefixes) if clause.id in own)


def check_selection(prefixes: tuple[str, ...], profile: str) -> None:
    """Raise UnknownClauseError if a prefix selects nothing, OutsideProfileError if nothing of this profile.

    The profile may be several, `lm,paths`: a prefix selects something of one of them. Raises ValueError for an
    unknown one.
    """
    named_profile(profile)
    for prefix in prefixes:
        if not select((prefix,), profile):
            raise OutsideProfileError(prefix, profile, _homes(prefix))


def profiles_of(prefixes: tuple[str, ...]) -> str:
    """Return the profiles that these prefixes are about, as `core,lm`: core alone for what has clauses there."""
    homes = [_homes(prefix) for prefix in prefixes]
    wanted = {name for one in homes for name in (one[:1] if "core" in one else one)}
    return ",".join(name for name in PROFILES if name in wanted) or "core"


def _homes(prefix: str) -> tuple[str, ...]:
    """Return the profiles whose documents contain what a prefix selects, core first."""
    return tuple(dict.fromkeys(clause.profile for clause in select((prefix,))))


def _selected(prefixes: tuple[str, ...]) -> tuple[Clause, ...]:
    if not prefixes:
        return tuple(clauses().values())
    chosen: set[str] = set()
    for prefix in prefixes:
        head = prefix.upper().rstrip("-")
        matching = {head} & clauses().keys() or {i for i in clauses() if i.startswith(head + "-")}
        matching = matching or {i for i, c in clauses().items() if c.component == prefix != "all"}
        if not matching:
            raise UnknownClauseError(prefix, _nearest(prefix))
        chosen |= matching
    return tuple(c for i, c in clauses().items() if i in chosen)


def parse(stem: str, text: str) -> Iterator[Clause]:
    """Yield the clauses of one document.

    A line `Component: X` names the component of the clauses below it, up to the next such line.
    """
    lines = text.splitlines()
    marks = [n for n, line in enumerate(lines) if line.startswith(_MARKS)]
    first = next((n for n in marks if not lines[n].startswith("## ")), None)
    if first is None or not lines[first].startswith("Component: "):
        raise ClauseSyntaxError(stem, (first or 0) + 1, "the line 'Component: …' is missing before the first clause")
    component = ""
    for start, end in zip(marks, [*marks[1:], len(lines)], strict=True):
        if lines[start].startswith("Component: "):
            component = lines[start].removeprefix("Component: ").strip().rstrip(".")
        elif lines[start].startswith("### "):
            yield _clause(stem, component, start + 1, lines[start], lines[start + 1 : end])


def _clause(stem: str, component: str, line: int, heading: str, body: list[str]) -> Clause:
    match = _HEADING.match(heading)
    if not match:
        raise ClauseSyntaxError(stem, line, f"a clause begins with '### AN-ID', not {heading!r}")
    title, *rest = _paragraphs(body)
    values: dict[str, str] = {}
    for paragraph in rest:
        name, _, value = paragraph.partition(": ")
        if name in values or not _FIELD.match(paragraph):
            raise ClauseSyntaxError(stem, line, f"{match[1]}: unexpected paragraph {paragraph[:40]!r}")
        values[name] = paragraph if name == "Evidence" else value
    missing = {"Normative", "Why", "Fix", "Evidence"} - values.keys()
    if missing:
        raise ClauseSyntaxError(stem, line, f"{match[1]}: {', '.join(sorted(missing))} is missing")
    facts = _FACTS.match(values["Evidence"])
    if not facts:
        raise ClauseSyntaxError(stem, line, f"{match[1]}: the line of facts is not 'Evidence: … . Level: … . …'")
    return Clause(
        id=match[1], title=title, normative=values["Normative"], why=values["Why"], fix=values["Fix"],
        level=Level(facts["level"]), evidence=tuple(facts["evidence"].split(", ")), profile=facts["profile"],
        since=facts["since"], source=facts["source"], private=facts["private"] or "", component=component,
        document=stem, line=line, applies=_conditions(stem, line, values.get("Applies", "")),
        needs=tuple(_items(values.get("Needs", ""))), sizes=_sizes(stem, line, values.get("Sizes", "")),
    )  # fmt: skip


def _paragraphs(body: list[str]) -> list[str]:
    """Join continuation lines: a paragraph starts with a field's name, the title is the first line."""
    found: list[str] = []
    for raw in body:
        text = raw.strip()
        if not text:
            continue
        if not found or _FIELD.match(text) or len(found) == 1:
            found.append(text)
        else:
            found[-1] += " " + text
    return found or [""]


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.rstrip(".").split(",") if item.strip()]


def _conditions(stem: str, line: int, text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in _items(text):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals:
            raise ClauseSyntaxError(stem, line, f"a condition reads 'name = value', not {item!r}")
        pairs[name] = value
    return pairs


def _sizes(stem: str, line: int, text: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for item in _items(text):
        match = _SIZE.fullmatch(item)
        if not match or int(match["low"]) > int(match["high"]):
            raise ClauseSyntaxError(stem, line, f"a size reads 'name 1–768', not {item!r}")
        found[match["name"]] = (int(match["low"]), int(match["high"]))
    return found


def _nearest(wanted: str) -> tuple[str, ...]:
    known = list(clauses())
    prefixes = list(dict.fromkeys(i.partition("-")[0] for i in known))
    return tuple(difflib.get_close_matches(wanted.upper(), known + prefixes, n=3, cutoff=0.5))
