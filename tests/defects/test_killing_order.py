"""Runs that end at the first failure judge what finds mistakes soonest first."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from conformkit.conformance.defects.killing_order import killing_order, soonest_first
from conformkit.conformance.defects.kills import kills
from conformkit.spec.clauses import clause, clauses, select


def test_nothing_is_lost_or_judged_before_what_it_needs() -> None:
    """Would break if a clause were left out of such a run, or a mistake were found by a clause that is blocked."""
    given = select((), "core")
    ordered = soonest_first(given)
    assert sorted(one.id for one in ordered) == sorted(one.id for one in given)
    order = killing_order()
    early = [
        one for one in order if one in clauses() and any(order.get(need, 0) > order[one] for need in clause(one).needs)
    ]
    assert early == []


def test_clauses_that_catch_nothing_more_keep_their_order() -> None:
    given = [one for one in select((), "core") if one.id not in killing_order()]
    assert soonest_first(given) == given


def test_known_mistakes_are_found_after_fewer_clauses_than_by_the_law() -> None:
    """Would break if the order were lost, turned round, or so old that it no longer helps.

    `python benchmarks/killing_order.py` makes it again.
    """
    given = select((), "core")
    by_law = [one.id for one in given]
    learned = [one.id for one in soonest_first(given)]
    assert statistics.median(_judged(learned)) < 0.8 * statistics.median(_judged(by_law))


def _judged(order: Sequence[str]) -> Iterator[int]:
    """Yield for each known mistake of core after how many clauses it is found."""
    places = {name: number for number, name in enumerate(order)}
    for red in kills().values():
        if found := [places[name] for name in red if name in places]:
            yield min(found)
