"""`pytest --clause ID`: only what concerns one clause, or all clauses whose ids have this prefix.

These are the form of the documents, the reference judged by the clause, and each known mistake that names it.
"""

from __future__ import annotations

from collections.abc import Collection

import pytest

from conformkit.conformance.defects import defects
from conformkit.spec.clauses import UnknownClauseError, select

__all__ = ["PLACES", "concerned", "wanted"]

PLACES = ("tests/suite/test_reference.py", "tests/suite/test_known_mistakes.py", "tests/spec/test_clauses.py")
"""Where these tests are. In them, the parameter `clause` holds a clause's id and `mistake` a known mistake's id."""


def wanted(given: str) -> frozenset[str]:
    """Return the ids of clauses that the option gives. Raises UsageError."""
    try:
        return frozenset(clause.id for clause in select(tuple(given.split(","))))
    except UnknownClauseError as error:
        raise pytest.UsageError(f"--clause: {error}") from error


def concerned(items: Collection[pytest.Item], clauses: frozenset[str]) -> list[pytest.Item]:
    """Return the items that concern these clauses: the others are about another clause or another mistake."""
    mistakes = {name for name, defect in defects().items() if not clauses.isdisjoint(defect.clauses)}
    return [item for item in items if _about(item, "clause") <= clauses and _about(item, "mistake") <= mistakes]


def _about(item: pytest.Item, parameter: str) -> set[str]:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    return {parameters[parameter]} if parameter in parameters else set()
