"""What takes turns in CI, since the cases are many and alike; each night runs everything.

Clauses about every size take half the time of right code: each package meets a third of them, another third each time
that CONFORM_SEED is another one; CONFORM_SIZES=all asks for all. What a change concerns is met whole: by each package
if the clause's prose or test changed, and by a package that changed itself.

With CONFORM_CASES=2/8, as in `.ci/run`, the dear families of the full tier run the second eighth of their cases: each
is in one eighth. The fixed sample runs each time, and so does what a change concerns: a case whose test's file has
changed, or what it names as near.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import pytest

from conformkit.spec.clauses import Clause, clauses_of

from .costs import Costs, family, numbers
from .tiers import ROOT, changed_now, concerned

__all__ = ["CASES", "left_out", "share", "waiting"]

SHARES = 3
CASES = "CONFORM_CASES"
"""The environment variable that says which cases have their turn; all of them without it."""
DEAR = 20.0
"""Seconds that the cases of a family take together if they take turns."""
FEW = 3
"""Fewer cases than these don't take turns."""


def waiting(items: Iterable[pytest.Item], costs: Costs) -> set[pytest.Item]:
    """Return the cases whose turn it isn't. Items come in a fixed order. Raises UsageError."""
    chosen = os.environ.get(CASES, "all")
    if chosen == "all":
        return set()
    turn, turns = numbers(CASES, chosen)
    families: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    seconds = Counter[str]()
    for item in items:
        if any(item.iter_markers("full")):
            families[family(item.nodeid)].append(item)
            seconds[family(item.nodeid)] += costs.of(item.nodeid)
    taking = {name: _many(of) for name, of in families.items() if seconds[name] >= DEAR}
    return {
        item for name, of in taking.items() for number, item in enumerate(of, crc32(name.encode()))
        if len(of) >= FEW and number % turns != turn - 1 and not concerned(_near(item))
    }  # fmt: skip


def _many(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Return the cases without the fixed sample that was quick until it was known as dear; but all if all were."""
    return [item for item in cases if not any(mark.kwargs.get("left") for mark in item.iter_markers("full"))] or cases


def _near(item: pytest.Item) -> set[str]:
    marked = {path for mark in item.iter_markers("full") for path in mark.kwargs.get("near", ())}
    return {item.nodeid.partition("::")[0], *marked}


def left_out(name: str, profile: str, files: Path | None = None) -> tuple[str, ...]:
    """Return the clauses about every size that a package of this name doesn't meet this time."""
    changed = changed_now()
    if os.environ.get("CONFORM_SIZES") == "all" or (files is not None and _changed(files, changed)):
        return ()
    sized = [clause for clause in clauses_of(profile).values() if clause.sizes]
    turn = crc32(name.encode()) + int(os.environ.get("CONFORM_SEED", "0"))
    return tuple(
        clause.id for number, clause in enumerate(sized)
        if (number + turn) % SHARES and changed.isdisjoint(_about(clause))
    )  # fmt: skip


def share(name: str, profile: str, files: Path | None = None) -> str:
    """Return the same as a text for `tests.outcomes.Inputs`: an outcome is that of what was met."""
    return " ".join(("without", *left_out(name, profile, files)))


def _changed(files: Path, changed: frozenset[str]) -> bool:
    own = files.relative_to(ROOT).as_posix()
    return any(file == own or file.startswith(f"{own}/") for file in changed)


def _about(clause: Clause) -> tuple[str, str]:
    return f"spec/{clause.document}.md", f"conformance/suite/test_{clause.document}.py"
