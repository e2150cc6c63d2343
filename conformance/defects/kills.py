"""Which clauses each defect breaks, as last measured: kills.json, beside this file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from conformkit.spec.clauses import Level, clauses

__all__ = ["as_json", "catches", "kill_rate", "kills"]

Kills = Mapping[str, Sequence[str]]


@cache
def kills() -> Kills:
    """Return, by defect, the clauses that were red when it was last measured: those that it names, and others."""
    found: Kills = json.loads(files(__package__).joinpath("kills.json").read_text(encoding="utf-8"))
    return found


def catches(clause_id: str) -> Sequence[str]:
    """Return the defects that a clause was red with."""
    return _by_clause().get(clause_id, ())


@cache
def _by_clause() -> Kills:
    found: dict[str, list[str]] = {}
    for name, red in kills().items():
        for clause_id in red:
            found.setdefault(clause_id, []).append(name)
    return found


def as_json(measured: Kills) -> str:
    """Return a measurement in the form that is kept."""
    return json.dumps({name: list(measured[name]) for name in sorted(measured)}, indent=1) + "\n"


def kill_rate(measured: Kills) -> tuple[int, int]:
    """Return how many defects break a binding clause, and how many there are."""
    binding = {name for name, clause in clauses().items() if clause.level is Level.MUST}
    return sum(not binding.isdisjoint(red) for red in measured.values()), len(measured)
