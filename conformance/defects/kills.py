"""Which clauses each known mistake breaks, as its file says: those that it names, and those in `also`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from conformkit.conformance.defects.facts import listed
from conformkit.spec.clauses import Level, clauses

__all__ = ["catches", "kill_rate", "kills", "named"]

Kills = Mapping[str, Sequence[str]]


@cache
def kills() -> Kills:
    """Return the ids of the clauses that each known mistake breaks, in the order of the law, by the mistake's id."""
    order = {clause_id: number for number, clause_id in enumerate(clauses())}
    told = sorted(listed("clauses", "also"))
    return {name: tuple(sorted(ids, key=lambda clause_id: order.get(clause_id, len(order)))) for name, ids in told}


@cache
def named() -> Kills:
    """Return the clauses that each known mistake names: those that it breaks however it is made."""
    return {name: tuple(ids) for name, ids in listed("clauses")}


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
