"""Which clauses use changed code of the suite's helpers and of evidence: their known mistakes judge it best.

Right code alone says little of a measurement that has become too lenient. What is followed are names: a function that
uses a changed one counts as changed, in its module and where it is imported, up to the tests of clauses.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .tiers import ROOT

__all__ = ["FOLDERS", "clauses_using"]

FOLDERS = ("conformance/evidence/", "conformance/suite/")
"""Code that some clauses use, and others do not."""

Place = tuple[str, str]
"""A file and a name that it defines."""


@dataclass(frozen=True)
class _Part:
    """What a module defines at its top: where, with which names of others, and for which clause."""

    lines: range
    uses: frozenset[Place]
    clause: str


def clauses_using(lines: Mapping[str, Iterable[int]]) -> frozenset[str]:
    """Return the ids of the clauses whose tests run what is defined in these lines, given by file."""
    parts = _parts()
    changed = {
        place for place, part in parts.items() if any(number in part.lines for number in lines.get(place[0], ()))
    }
    reached: set[Place] = set()
    while changed:
        reached |= changed
        changed = {place for place, part in parts.items() if not changed.isdisjoint(part.uses)} - reached
    return frozenset(parts[place].clause for place in reached) - {""}


@cache
def _parts() -> Mapping[Place, _Part]:
    files = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.py"))
    return dict(pair for path in files for pair in _of_module(path))


def _of_module(path: Path) -> Iterator[tuple[Place, _Part]]:
    file, body = path.relative_to(ROOT).as_posix(), ast.parse(path.read_bytes()).body
    origins = dict(_origins(body))
    for node in body:
        names = _defined(node)
        used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} if names else set()
        uses = frozenset(origins.get(name, (file, name)) for name in used)
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", ()))])
        part = _Part(range(first, (node.end_lineno or node.lineno) + 1), uses, _clause(node))
        yield from (((file, name), part) for name in names)


def _origins(body: Iterable[ast.stmt]) -> Iterator[tuple[str, Place]]:
    """Yield what a module calls the names of another: `from conformkit.conformance.evidence.a import b as c`."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("conformkit.conformance."):
            file = (node.module or "").removeprefix("conformkit.").replace(".", "/") + ".py"
            yield from ((alias.asname or alias.name, (file, alias.name)) for alias in node.names)


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _clause(node: ast.stmt) -> str:
    """Return the id of the clause that a function is the test of."""
    for one in getattr(node, "decorator_list", ()):
        if isinstance(one, ast.Call) and getattr(one.func, "id", "") == "clause":
            return str(ast.literal_eval(one.args[0]))
    return ""
