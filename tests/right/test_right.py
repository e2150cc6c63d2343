"""No false alarm: right implementations, differently written, break no binding clause. false_alarms.py tries more seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentNursery

from .false_alarms import alarms, right_ones


@pytest.mark.parametrize("impl", right_ones(), ids=lambda impl: Path(impl).stem)
def test_a_right_implementation_breaks_no_binding_clause(impl: str, warm: LentNursery) -> None:
    found = [f"seed {seed}: {result.clause.id}: {result.message}" for seed, result in alarms(impl, [0], warm=warm)]
    assert not found, "\n".join(found)
