"""Known mistakes that no clause tells apart: the clauses that they name fail in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from conformkit.conformance.defects.facts import listed

__all__ = ["twins_of"]


def twins_of(name: str) -> tuple[str, ...]:
    """Return the others that fail as this known mistake does, by their ids."""
    return tuple(sorted(_groups().get(name, frozenset()) - {name}))


@cache
def _groups() -> Mapping[str, frozenset[str]]:
    """Return the group of each mistake that has twins; it is enough that one of each pair names the other."""
    groups: dict[str, frozenset[str]] = {}
    for name, others in listed("twins"):
        together = frozenset({name, *others}).union(*(groups.get(one, frozenset()) for one in (name, *others)))
        groups |= dict.fromkeys(together, together) if others else {}
    return groups
