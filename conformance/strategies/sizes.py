"""Strategies for sizes: mostly small ones, those around usual thresholds, and any other of a domain."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st

from conformkit.conformance.assertions.sizes import THRESHOLDS, Domain, small
from conformkit.spec.clauses import clause

__all__ = ["domain", "sizes"]


def domain(clause_id: str) -> dict[str, tuple[int, int]]:
    """Return the least and the largest of each size of which a clause speaks; empty if it has none of its own.

    Raises UnknownClauseError.
    """
    return dict(clause(clause_id).sizes)


def sizes(domain: Mapping[str, tuple[int, int]]) -> st.SearchStrategy[dict[str, int]]:
    """Return a strategy for one size of each name, `{"tokens": 257, "num_heads": 3}`, within its least and largest.

    Shrinks towards small sizes. Raises ValueError if a least size is above its largest.
    """
    for name, (low, high) in domain.items():
        if low > high:
            raise ValueError(f"{name}: the least size, {low}, is above the largest, {high}")
    return st.fixed_dictionaries({name: _size(name, domain) for name in domain})


def _size(name: str, domain: Domain) -> st.SearchStrategy[int]:
    low, high = domain[name]
    first, last = small(name, domain)
    around = {near for mark in THRESHOLDS.get(name, ()) for near in (mark - 1, mark, mark + 1) if low <= near <= high}
    found = [st.integers(first, last), *([st.sampled_from(sorted(around))] if around else []), st.integers(low, high)]
    return st.one_of(*found)
