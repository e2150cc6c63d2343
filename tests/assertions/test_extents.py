"""The sizes that calls had: ranges widen, and ranges of several clauses are joined."""

from conformkit.conformance.assertions.checks import called, gathering
from conformkit.conformance.assertions.extents import joined, overall, widen


def test_a_range_goes_from_the_smallest_to_the_largest() -> None:
    extents = {}
    for tokens in (5, 2, 600, 30):
        widen(extents, "Block", {"tokens": tokens})
    assert extents == {"Block": {"tokens": (2, 600)}}


def test_clauses_and_components_are_joined() -> None:
    one, other = {"A": {"tokens": (2, 5)}}, {"A": {"tokens": (4, 9), "batch": (1, 1)}, "B": {"tokens": (600, 601)}}
    both = joined([one, other])
    assert both == {"A": {"tokens": (2, 9), "batch": (1, 1)}, "B": {"tokens": (600, 601)}}
    assert overall(both) == {"tokens": (2, 601), "batch": (1, 1)}


def test_calls_count_for_the_clause_that_is_being_checked() -> None:
    called("A", {"tokens": 3})
    with gathering() as evidence:
        called("A", {"tokens": 7})
    assert evidence.extents == {"A": {"tokens": (7, 7)}}
