"""No false alarm: right implementations, differently written, break no binding clause. false_alarms.py tries more seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from .false_alarms import alarms, right_ones


SEEN_TO_STALL = {"complex_rope"}
"""Did not answer once in a whole run of all tests, cause unknown; `tox -e right` tries it."""


@pytest.mark.parametrize(
    "impl", [i for i in right_ones() if Path(i).stem not in SEEN_TO_STALL], ids=lambda impl: Path(impl).stem
)
def test_a_right_implementation_breaks_no_binding_clause(impl: str) -> None:
    found = [f"seed {seed}: {result.clause.id}: {result.message}" for seed, result in alarms(impl, [0])]
    assert not found, "\n".join(found)
