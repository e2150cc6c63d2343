"""`pytest --changed`: what the changed files concern, nearest and cheapest first, in less than a minute.

A change to clauses or known mistakes alone runs what is about those. For all other files it takes what fits into the
budget; the rest is for CI.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from conformkit.conformance.defects import defects

from . import one_clause, tiers
from .clauses_using import FOLDERS, clauses_using
from .concerns import Change, changed_clauses, changed_mistakes
from .costs import Costs, family

__all__ = ["ABOUT", "Selection", "changed_lines", "quick_again"]

ABOUT = "CONFORM_CHANGED_IDS"
"""The environment variable with the ids of changed clauses and known mistakes, so that all workers agree."""
USED = "CONFORM_CHANGED_USED_BY"
"""The same for clauses whose tests use changed code of the suite and of evidence."""
SECONDS = 55.0
"""What the chosen tests may take together, in one process."""
MOST = 60
"""Test files that are looked into; those that concern a change from afar only where no test is recorded."""
LAW_SECONDS = 2.5
"""The same where clauses or known mistakes alone changed."""
AGAIN = 40.0
"""What dear tests may add to the quick tier."""
OF_EACH = 2
"""Known mistakes that judge changed evidence, for each clause that uses it."""
_UNKNOWN = 5.0
_LAW = ("spec/", "conformance/suite/test_", "conformance/defects/")
_MISTAKES = "tests/defects/test_defects.py"


@dataclass(frozen=True)
class Selection:
    """The tests that changed files concern."""

    files: frozenset[str]
    ids: frozenset[str]
    """Of clauses and known mistakes."""
    users: frozenset[str] = frozenset()
    """Ids of clauses that use what changed, and of a few known mistakes that name each of them."""

    @classmethod
    def of(cls, files: Iterable[str]) -> Selection:
        """Find out which ids changed, once."""
        names = frozenset(files)
        if ABOUT not in os.environ:
            lines = changed_lines(names)
            ids = changed_clauses(lines) | changed_mistakes(names)
            users = clauses_using(lines) if any(file.startswith(FOLDERS) for file in names) else frozenset()
            os.environ[ABOUT] = "\n".join(sorted(ids))
            os.environ[USED] = "\n".join(sorted(users | _mistakes_of(users - ids)))
        return cls(names, frozenset(os.environ[ABOUT].split()), frozenset(os.environ.get(USED, "").split()))

    @property
    def law_alone(self) -> bool:
        """Whether all that changed has an id."""
        about = [file.startswith(_LAW) and not file.endswith("__init__.py") for file in self.files]
        return (
            bool(self.ids)
            and all(about)
            and not any(file.endswith(".py") and "/suite/" not in file for file in self.files)
        )

    def places(self) -> list[str]:
        """Return the test files to look into."""
        found = [*one_clause.PLACES, _MISTAKES] if self.ids or self.users else []
        if not self.law_alone:
            recorded = [_file(name) for name in Change(self.files).families()[:MOST]]
            near = [(rank, place) for rank, place in Change(self.files).places() if rank <= 2 or not recorded]
            found += [*(place for rank, place in near if not rank), *recorded, *(place for _, place in near)]
        return [place for place in dict.fromkeys(found) if (tiers.ROOT / place).exists()][:MOST]

    def choose(self, items: Sequence[pytest.Item], costs: Costs) -> list[pytest.Item]:
        """Return the items that run: of the files with the nearest and cheapest first, in each as they stand."""
        ranked = sorted((rank, _cost(item, costs), item.nodeid) for item, rank in self._ranked(items))
        kept: set[str] = set()
        spent = 0.0
        for _, cost, name in ranked:
            if spent + cost <= (LAW_SECONDS if self.law_alone else SECONDS):
                spent += cost
                kept.add(name)
        files = list(dict.fromkeys(_file(name) for _, _, name in ranked if name in kept))
        return sorted((item for item in items if item.nodeid in kept), key=lambda item: files.index(_file(item.nodeid)))

    def _ranked(self, items: Sequence[pytest.Item]) -> Iterable[tuple[pytest.Item, float]]:
        near = {place: rank for rank, place in Change(self.files).places()}
        told = {name: 0.5 + number / 10_000 for number, name in enumerate(Change(self.files).families())}
        own = {PurePosixPath(file).parts[2] for file in self.files if file.count("/") > 2 and file.startswith("tests/")}
        for item in items:
            place, name = _file(item.nodeid), family(item.nodeid)
            if (about := _about(item)) is not None:
                if about in self.ids or not self.ids.isdisjoint(_named_by(about)):
                    yield item, 0
                elif about in self.users and not self.law_alone:
                    yield item, 1
            elif self.law_alone:
                yield item, 1
            elif any(f"[{folder}]" in item.nodeid for folder in own):
                yield item, 0
            elif place in near or name in told:
                yield item, min(near.get(place, 9), told.get(name, 9))


def quick_again(items: Sequence[pytest.Item], costs: Costs, files: frozenset[str]) -> set[str]:
    """Return the dear tests that a change concerns closely, as many as the quick tier can take."""
    change = Change(files)
    near = {place: rank for rank, place in change.places() if rank <= 2}
    told = set(change.families())
    ranked = sorted(
        (near.get(_file(item.nodeid), 3), costs.of(item.nodeid), item.nodeid)
        for item in items
        if _file(item.nodeid) in near or family(item.nodeid) in told
    )
    spent, kept = 0.0, set()
    for _, cost, name in ranked:
        if spent + cost <= AGAIN:
            spent += cost
            kept.add(name)
    return kept


def changed_lines(files: Iterable[str]) -> Mapping[str, list[int]]:
    """Return, for each changed document or test of clauses, and code of evidence, the numbers of its new lines."""
    found: dict[str, list[int]] = {}
    for file in files:
        if file.startswith((*_LAW[:2], *FOLDERS)):
            told = subprocess.run(
                ["git", "diff", "-U0", tiers.base(), "--", file],
                cwd=tiers.ROOT,
                capture_output=True,
                text=True,
                check=False,
            ).stdout
            hunks = (line.split(" ")[2][1:].partition(",") for line in told.splitlines() if line.startswith("@@"))
            found[file] = [
                number
                for start, _, count in hunks
                for number in range(int(start), int(start) + max(1, int(count or 1)))
            ]
    return found


def _cost(item: pytest.Item, costs: Costs) -> float:
    """Return what an item takes; of the full tier, what nobody has recorded is no small thing."""
    return max(
        costs.of(item.nodeid), 0.0 if costs.knows(item.nodeid) or not any(item.iter_markers("full")) else _UNKNOWN
    )


def _file(name: str) -> str:
    return name.partition("::")[0]


def _about(item: pytest.Item) -> str | None:
    """Return the clause or the known mistake that a case is about."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    if not item.nodeid.startswith(one_clause.PLACES):
        return None
    return parameters.get("clause", parameters.get("mistake"))


def _named_by(mistake: str) -> tuple[str, ...]:
    return defects()[mistake].clauses if mistake in defects() else ()


def _mistakes_of(clauses: Iterable[str]) -> frozenset[str]:
    """Return a few known mistakes that name each of these clauses: who takes too much for right shows by those."""
    found: dict[str, list[str]] = {name: [] for name in clauses}
    for mistake, defect in sorted(defects().items()) if found else ():
        for name in found.keys() & set(defect.clauses):
            found[name].append(mistake)
    return frozenset(mistake for of in found.values() for mistake in of[:: max(1, len(of) // OF_EACH)][:OF_EACH])
