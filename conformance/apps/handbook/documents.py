"""The source of every page: an index, a page per document of the law, a page of its known mistakes, the errata."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from conformkit.conformance.apps.handbook.markdown import (
    code,
    document,
    entry,
    fields,
    mistake,
    prose,
    to_clause,
    to_clauses,
    to_erratum,
    to_mistake,
)
from conformkit.conformance.defects import Defect, Patch, defects
from conformkit.conformance.defects.kills import catches, kill_rate, kills
from conformkit.spec.clauses import SPEC_VERSION, STEMS, Clause, clauses
from conformkit.spec.errata import Erratum, errata, errata_of
from conformkit.spec.profiles import PROFILES
from conformkit.spec.sources import public

__all__ = ["sources"]

_TITLES = {
    "core": "The core", "lm": "The language model", "seq2seq": "The encoder-decoder",
    "encoder": "The encoder alone", "vit": "Images", "paths": "Every way through the model", "finetune": "Fine-tuning",
}  # fmt: skip
"""Titles by profile; milestones are selections of these documents."""


def sources() -> dict[str, str]:
    """Return the Markdown of each page by its path, without `.md`."""
    pages = {"index": _index(), "sources": _text("sources"), "errata": _errata()}
    for stem in STEMS:
        pages[f"law/{stem}"] = _law(stem)
        if _mistakes().get(stem):
            pages[f"mistakes/{stem}"] = _known(stem)
    return pages


_COLUMNS = re.compile(r" {3,}")

_INTRODUCTION = """\
{clauses} clauses say what attention, a transformer block and a tiny language model MUST, SHOULD and MAY do (RFC 2119).
Each has a test, a reason, and what to do if it fails.

{total} known mistakes show that the tests work: {killed} of them break a MUST. If an implementation gives the numbers
of one of them, its report names it.

In a terminal, `conform explain ID` shows the same."""


# --- the index --------------------------------------------------------------------------------------------------------


def _index() -> str:
    killed, total = kill_rate(kills())
    lines = [f"# The law of small transformers, version {SPEC_VERSION}", _INTRODUCTION.format(
        clauses=len(clauses()), total=total, killed=killed
    )]  # fmt: skip
    listed: set[str] = set()  # a document of two profiles stands where it is first
    for profile, title in _TITLES.items():
        lines.append(_contents(title, [f"law/{stem}" for stem in PROFILES[profile].documents if stem not in listed]))
        listed |= {*PROFILES[profile].documents}
    lines.append(_contents("Known mistakes", [f"mistakes/{stem}" for stem in STEMS if _mistakes().get(stem)]))
    lines.append(_contents("Sources", ["sources", "errata"]))
    return "\n\n".join(lines) + "\n"


def _contents(caption: str, pages: Sequence[str]) -> str:
    return code("\n".join([f":caption: {caption}", ":maxdepth: 1", "", *pages]), "{toctree}")


# --- clauses ----------------------------------------------------------------------------------------------------------


def _law(stem: str) -> str:
    """Return a document of the law: its prose unchanged, each clause as an entry."""
    members = {clause.line: clause for clause in clauses().values() if clause.document == stem}
    lines: list[str] = [f"({document(stem)})="]
    inside, level = False, 2
    for number, line in enumerate(_text(stem).splitlines(), start=1):
        if line.startswith("## "):
            level = 3
        if number in members:
            lines += ["", _clause(members[number], level)]
        inside = number in members or (inside and not line.startswith(("## ", "Component: ")))
        if line.startswith("Component: "):
            lines.append(f"*{line.rstrip('.')}*")
        elif not inside:
            lines += _narrow(line)
    return "\n".join(lines) + "\n"


def _narrow(line: str) -> list[str]:
    """Return a line of a formula as several where it has columns: on a phone there is room for one."""
    if not line.startswith("    "):
        return [line]
    return [f"    {part}" for part in _COLUMNS.split(line.strip())]


def _text(stem: str) -> str:
    return files("conformkit.spec").joinpath(f"{stem}.md").read_text(encoding="utf-8")


def _clause(clause: Clause, level: int) -> str:
    said = {
        "Normative": prose(clause.normative), "Why": prose(clause.why), "Fix": prose(clause.fix),
        "Applies": prose(", ".join(f"{name} = {value}" for name, value in clause.applies.items())),
        "Sizes": prose(clause.domain),
        "Needs": to_clauses(clause.needs),
    }  # fmt: skip
    facts = f"{clause.level} · {', '.join(clause.evidence)} · since {clause.since} · {prose(clause.source)}"
    caught = set(catches(clause.id))
    mistakes = [to_mistake(name, known.title) for name, known in defects().items() if name in caught]
    return entry(
        clause.id.lower(), clause.id, f"**{prose(clause.title)}**", fields(said), facts,
        _list("Catches, for example:", mistakes, most=12), _list("Sources err here:", _points(clause)), level=level,
    )  # fmt: skip


def _points(clause: Clause) -> list[str]:
    return [to_erratum(point.id, point.title) for point in errata_of(clause.id)]


def _list(title: str, items: Sequence[str], most: int = 100) -> str:
    if not items:
        return ""
    more = [f"- and {len(items) - most} more"] if len(items) > most else []
    return "\n".join([f"{title}\n", *(f"- {item}" for item in items[:most]), *more])


# --- known mistakes ---------------------------------------------------------------------------------------------------


@cache
def _mistakes() -> Mapping[str, Sequence[Defect]]:
    found: dict[str, list[Defect]] = {}
    for known in defects().values():
        found.setdefault(known.stem, []).append(known)
    return found


def _known(stem: str) -> str:
    title = _text(stem).splitlines()[0].removeprefix("# ").strip()
    text = f"# Mistakes: {title}\n\nKnown mistakes in [what this document requires](#{document(stem)}).\n"
    return "\n".join([text, *map(_mistake, _mistakes()[stem])])


def _mistake(known: Defect) -> str:
    variant = ", ".join(f"{name} = {value}" for name, value in known.choices.items())
    facts = {
        "Symptom": prose(known.hint.symptom), "Look at": prose(known.hint.area), "Fix": prose(known.hint.mistake),
        "Common": known.common, "Variant": prose(variant), "Breaks": to_clauses(known.clauses),
        "Source": prose("; ".join(public(known.sources))),
    }  # fmt: skip
    patches = map(_patch, known.patches)
    return entry(mistake(known.id), known.id, f"**{prose(known.title)}**", fields(facts), *patches)


def _patch(patch: Patch) -> str:
    """Return a patch as a diff: without it the reference is right."""
    where = f"{patch.file}, {patch.at}" if patch.at else patch.file
    lines = [f"# {where}", *(f"-{line}" for line in patch.find.splitlines())]
    return code("\n".join([*lines, *(f"+{line}" for line in patch.replace.splitlines())]), "diff")


# --- errata -----------------------------------------------------------------------------------------------------------


def _errata() -> str:
    """Return the errata: the introduction unchanged, each point as an entry."""
    introduction = _text("errata").partition("\n## ")[0]
    return "\n".join([introduction, *_by_subject()])


def _by_subject() -> Iterator[str]:
    subject = ""
    for point in errata().values():
        if point.subject != subject:
            subject = point.subject
            yield f"\n## {prose(subject)}\n"
        yield _erratum(point)


def _erratum(point: Erratum) -> str:
    facts = {
        "Claim": prose(point.claim), "Why": prose(point.why),
        "Recomputed": ", ".join(f"`{name} = {_value(value)}`" for name, value in point.recomputed.items()),
        "Ruling": prose(point.ruling),
        "Clauses": ", ".join(map(to_clause, point.clauses)) or prose(f"none: {point.reason}"),
    }  # fmt: skip
    return entry(point.id.lower(), point.id, f"**{prose(point.title)}**", fields(facts), level=3)


def _value(value: object) -> str:
    return f"[{', '.join(map(_value, value))}]" if isinstance(value, tuple) else str(value)
