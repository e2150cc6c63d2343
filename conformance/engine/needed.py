"""Which components a selection of clauses needs: the others are not looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformkit.conformance.engine.providers import components_asked
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.suite.registry import arguments, tests
from conformkit.spec.clauses import Clause
from conformkit.spec.clauses import clause as find
from conformkit.spec.components import PARTS, components_of

__all__ = ["needed", "of_tests"]

_WHOLES = {name for name, parts in PARTS.items() if parts - {"ScaledDotProductAttention"}}
"""Components made of others with weights, which tell where those are."""


def needed(request: RunRequest, chosen: Iterable[Clause]) -> set[str] | None:
    """Return the components that a selection needs: its own, those of the clauses it needs, and the parts of wholes.

    None if it needs all of them.
    """
    if not request.only and not request.without and request.among is None:
        return None
    found = of_tests(_with_needs(chosen), request.profile)
    if found is None:
        return None
    order = list(components_of(request.profile))
    last = max((order.index(name) for name in found & _WHOLES if name in order), default=-1)
    return found | set(order[: last + 1])


def of_tests(chosen: Iterable[Clause], profile: str) -> set[str] | None:
    """Return the components of these clauses and of what their tests ask for; None for all of them."""
    found: set[str] = set()
    for clause in chosen:
        test = tests(profile).get(clause.id)
        asked = arguments(test) if test is not None else ()
        if clause.component == "all" or "every" in asked:
            return None
        found |= {clause.component} | components_asked(asked)
    return found


def _with_needs(chosen: Iterable[Clause]) -> Iterator[Clause]:
    """Yield these clauses and those that they need."""
    pending, seen = [clause.id for clause in chosen], set[str]()
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            clause = find(name)
            pending += clause.needs
            yield clause
