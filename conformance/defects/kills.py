"""Which clauses each known mistake breaks, as its file says: those that it names, and those in `also`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files

from conformkit.spec.clauses import Level, clauses

__all__ = ["catches", "kill_rate", "kills"]

Kills = Mapping[str, Sequence[str]]

_IDS = re.compile(r"^(?:clauses|also) = (\[.*\])$", re.MULTILINE)
"""The lines of a file that list ids of clauses."""


@cache
def kills() -> Kills:
    """Return the ids of the clauses that each known mistake breaks, in the order of the law, by the mistake's id.

    It reads two lines of each file. To parse all files takes four times as long, and a diagnosis needs few of them.
    """
    order = {clause_id: number for number, clause_id in enumerate(clauses())}
    told = sorted(_told())
    return {name: tuple(sorted(ids, key=lambda clause_id: order.get(clause_id, len(order)))) for name, ids in told}


def _told() -> Iterator[tuple[str, list[str]]]:
    """Yield the id of each known mistake with the ids of clauses in its file."""
    for folder in files(__package__).iterdir():
        for file in folder.iterdir() if folder.is_dir() else ():
            if file.name.endswith(".toml"):
                facts = file.read_text(encoding="utf-8").partition("\n[hint]")[0]
                yield file.name.removesuffix(".toml"), [name for ids in _IDS.findall(facts) for name in json.loads(ids)]


def catches(clause_id: str) -> Sequence[str]:
    """Return the ids of the known mistakes that break a clause."""
    return _by_clause().get(clause_id, ())


@cache
def _by_clause() -> Kills:
    found: dict[str, list[str]] = {}
    for name, broken in kills().items():
        for clause_id in broken:
            found.setdefault(clause_id, []).append(name)
    return found


def kill_rate(broken: Kills) -> tuple[int, int]:
    """Return how many known mistakes break a binding clause, and how many there are."""
    binding = {name for name, clause in clauses().items() if clause.level is Level.MUST}
    return sum(not binding.isdisjoint(red) for red in broken.values()), len(broken)
