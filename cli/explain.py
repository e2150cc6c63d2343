"""`conform explain`: a clause with its reason, its test and its stored values; an erratum; a stored value."""

from __future__ import annotations

import difflib
import re
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Annotated, Any

import typer

from conformkit.cli.completion import clause_ids
from conformkit.cli.exits import wrong
from conformkit.cli.spec import listing
from conformkit.conformance.defects import Defect, defect
from conformkit.conformance.defects.kills import catches, kills
from conformkit.fixtures import Stored, stored
from conformkit.spec.clauses import Clause, UnknownClauseError, select
from conformkit.spec.errata import Erratum, errata, errata_of

__all__ = ["explain", "page"]

IN_FULL = 5
"""Number of stored values that a clause shows in full; the others are listed by number."""
LONGEST = 240
"""Maximum characters of an array; the file has all of it."""
CUT = ", … ("
"""End of an array that is cut."""


def explain(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID",
            autocompletion=clause_ids,
            help="Clauses, or prefixes, which list theirs; errata (ERR-07); values (G8); known mistakes.",
        ),
    ],
) -> None:
    """Explain clauses, points on which sources err, or stored values; list the clauses of a prefix.

    What each says, why, how to fix a failure, and numbers to compare with.

    Examples:
      conform explain SDPA-SCALE
      conform explain MHA-SCALE-DHEAD GEN-TOPK
    """
    width = min(shutil.get_terminal_size().columns, 100)
    words = [word for item in ids for word in item.split(",") if word]
    if not words:
        wrong("ID", "is empty; name a clause, an erratum (ERR-07), a value (G8) or a known mistake.")
    pages = ["\n".join(page(word, width)) for word in words]
    print("\n\n".join(pages))


def page(wanted: str, width: int) -> Iterator[str]:
    """Yield the lines about a clause, an erratum, a stored value or a known mistake. Raises typer.BadParameter."""
    name = wanted.upper()
    if match := re.fullmatch(r"ERR-?(\d+)", name):
        name = f"ERR-{int(match[1]):02}"
    values = [item for item in stored() if name in {item.entry["number"], item.entry["id"].upper()}]
    if name in errata():
        return _erratum(errata()[name], width)
    if name == "ERR":
        return (line for point in errata().values() for line in _field(point.id, point.title, width))
    if not wanted.isupper() and (known := defect(wanted)) is not None:  # clauses are in capitals
        return _defect(known, width)
    if values:
        return _join(_value(item, width, alone=True) for item in values)
    found = _select(wanted)
    exact = [clause for clause in found if clause.id == name]
    return _clause(exact[0], width) if exact else listing(found, width)


def _select(wanted: str) -> tuple[Clause, ...]:
    try:
        return select((wanted,))
    except UnknownClauseError as error:
        others = dict.fromkeys([*errata(), *(item.entry["number"] for item in stored())])
        like_others = re.match(r"(ERR-?|G)\d", wanted.upper())
        near = difflib.get_close_matches(wanted.upper(), others, n=3, cutoff=0.5) if like_others else error.nearest
        hint = f"; nearest: {', '.join(near)}" if near else ""
        what = "clause, erratum, stored value or known mistake"
        wrong("ID", f"there is no {what} {wanted}{hint} (conform spec lists the clauses).")


def _clause(clause: Clause, width: int) -> Iterator[str]:
    yield from textwrap.wrap(f"{clause.id} · {clause.title}", width, break_on_hyphens=False)
    yield ""
    applies = ", ".join(f"{name} = {value}" for name, value in clause.applies.items())
    facts = {
        "normative": clause.normative, "why": clause.why, "fix": clause.fix, "level": clause.level,
        "component": clause.component, "profile": f"{clause.profile}, since {clause.since}",
        "evidence": ", ".join(clause.evidence), "applies": applies and f"when {applies}",
        "sizes": clause.domain,
        "needs": ", ".join(clause.needs), "source": clause.source, "test": _sentence(clause),
    }  # fmt: skip
    for name, value in facts.items():
        yield from _field(name, value, width)
    yield from _field("catches", _some(catches(clause.id)), width)
    for point in errata_of(clause.id):
        yield from _field(
            "erratum", f"{point.id}, where a source says otherwise: {point.title} Here: {point.ruling}", width
        )
    yield from _values(sorted((item for item in stored() if clause.id in item.clauses), key=_rank), width)


def _values(serving: Sequence[Stored], width: int) -> Iterator[str]:
    for item in serving[:IN_FULL]:
        yield from ["", *_value(item, width)]
    if serving[IN_FULL:]:
        rest = dict.fromkeys(item.entry["number"] for item in serving[IN_FULL:])
        more = f"{len(serving) - IN_FULL} more stored values: conform explain {' '.join(rest)}"
        yield from ["", *textwrap.wrap(more, width, break_on_hyphens=False)]


def _rank(item: Stored) -> tuple[bool, bool]:
    """Sort calls first, results of mistakes last."""
    return item.entry.get("kind") == "mistake", not item.is_call


def _sentence(clause: Clause) -> str:
    """Return the test's name as a sentence, read from its file: importing the suite would take longer."""
    suite = files("conformkit.conformance") / "suite"
    paths = [path for path in suite.iterdir() if re.fullmatch(r"test_\w+\.py", path.name)]
    test = re.compile(rf'^@clause\("{re.escape(clause.id)}"[^\n]*\)\n(?:@.*\n)*def test_(\w+)\(', re.MULTILINE)
    for path in sorted(paths, key=lambda path: (path.name != f"test_{clause.document}.py", path.name)):
        if match := test.search(path.read_text(encoding="utf-8")):
            return f"{match[1].replace('_', ' ')} ({path.name})"
    return ""


def _some(names: Sequence[str], most: int = 8) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more known mistakes" if more > 0 else "")


def _defect(known: Defect, width: int) -> Iterator[str]:
    from conformkit.spec.sources import public

    yield from textwrap.wrap(f"{known.id} · {known.title}", width, break_on_hyphens=False)
    yield ""
    variant = ", ".join(f"{name} = {_number(value)}" for name, value in known.choices.items())
    facts = {
        "symptom": known.hint.symptom, "look at": known.hint.area, "fix": known.hint.mistake, "common": known.common,
        "variant": variant, "caught by": ", ".join(kills().get(known.id, ())),
        "source": "; ".join(public(known.sources)),
    }  # fmt: skip
    for name, value in facts.items():
        yield from _field(name, value, width)


def _erratum(point: Erratum, width: int) -> Iterator[str]:
    yield from textwrap.wrap(f"{point.id} · {point.title}", width, break_on_hyphens=False)
    yield ""
    numbers = "; ".join(f"{name} = {_plain(value)}" for name, value in point.recomputed.items())
    facts = {
        "subject": point.subject, "claim": point.claim, "why": point.why, "recomputed": numbers, "ruling": point.ruling,
        "clauses": ", ".join(point.clauses) or f"none: {point.reason}.",
    }  # fmt: skip
    for name, value in facts.items():
        yield from _field(name, value, width)


# --- stored values ----------------------------------------------------------------------------------------------------


def _value(item: Stored, width: int, *, alone: bool = False) -> Iterator[str]:
    """Yield an entry: inputs, expected output, where that comes from, and what sources print instead."""
    entry = item.entry
    kind = entry.get("kind", "")
    what = {"mistake": f"what {entry.get('mistake')} gives: ", "measured": "measured: "}.get(kind, "")
    yield from textwrap.wrap(f"{entry['number']} · {what}{entry['title']}", width, break_on_hyphens=False)
    fields = _call(entry) if item.is_call else _fact(entry)
    fields["from"] = entry["provenance"]
    fields["printed"] = " ".join(f"{c['where']} has: {c['says']}. Wrong: {c['why']}." for c in entry["printed"])
    if alone:
        fields["serves"] = ", ".join(item.clauses)
    if any(CUT in text for text in fields.values()):
        fields["in full"] = f"fixtures/{item.file}, {entry['id']}"
    for name, text in fields.items():
        yield from _field(name, text, width, indent=2)


def _call(entry: Mapping[str, Any]) -> dict[str, str]:
    settings = {**entry["sizes"], **entry["variant"]}
    options = ", ".join(f"{name} = {_number(value)}" for name, value in settings.items())
    return {
        "calls": f"{entry['component']}{f' with {options}' if options else ''}",
        "given": _named(entry["inputs"]), "weights": _cut(_named(entry["weights"]), f"{len(entry['weights'])} in all"),
        "expected": _short(entry["expected"]), "exposes": ", ".join(entry["exposes"]),
    }  # fmt: skip


def _fact(entry: Mapping[str, Any]) -> dict[str, str]:
    gives = [f"{name} gives {_named(values)}" for name, values in entry["wrong"].items()]
    tolerance = f" (± {100 * entry['tolerance']:g} %)" if entry["tolerance"] else ""
    return {
        "given": _named(entry["inputs"]), "formula": entry["formula"], "value": _named(entry["value"]) + tolerance,
        "exposes": "; ".join(gives),
    }  # fmt: skip


def _named(values: Mapping[str, Any]) -> str:
    """Return `name = value` for each; equal arrays share one text."""
    texts: dict[tuple[str, str], list[str]] = {}
    for name, value in values.items():
        texts.setdefault((_short(value), "" if isinstance(value, list) else name), []).append(name)
    return "; ".join(f"{', '.join(same)} = {text}" for (text, _), same in texts.items())


def _short(value: Any) -> str:
    """Return a value's text; well-known arrays by name, long ones cut, with their shape."""
    shape, numbers = [], [value]
    while any(isinstance(part, list) for part in numbers):
        shape.append(max(len(part) for part in numbers))
        numbers = [inner for part in numbers for inner in part]
    extent = " by ".join(map(str, shape)) or "in all"
    if len(numbers) > 3 and set(map(str, numbers)) in ({"0.0"}, {"1.0"}):
        return f"{'zeros' if not numbers[0] else 'ones'} ({extent})"
    if len(shape) == 2 and shape[0] > 1 and value == [[i == j for j in range(len(value))] for i in range(len(value))]:
        return f"identity ({extent})"
    return _cut(_plain(value), extent)


def _cut(text: str, size: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: text.rfind(',', 0, LONGEST)]}{CUT}{size})"


def _plain(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_plain(part)}" for name, part in value.items()) + "}"
    return _number(value)


def _number(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.7g}" if isinstance(value, float) else str(value)


# --- lines ------------------------------------------------------------------------------------------------------------


def _field(name: str, value: str, width: int, indent: int = 0) -> Iterator[str]:
    """Yield the lines of a field, none if it is empty."""
    if value:
        margin = " " * indent
        yield from textwrap.wrap(
            value, width, initial_indent=f"{margin}{name + ':':<10} ", subsequent_indent=margin + " " * 11,
            break_on_hyphens=False,
        )  # fmt: skip


def _join(pages: Iterator[Iterator[str]]) -> Iterator[str]:
    for number, page in enumerate(pages):
        yield from [""] if number else []
        yield from page
