"""No false alarm in profile lm: right tools and models, differently written, break no binding clause.

What trains a model is left to `tests/right/false_alarms.py --profile lm`: it takes a minute each.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentNursery
from tests.right.false_alarms import alarms, right_ones


@pytest.mark.parametrize("impl", right_ones("lm"), ids=lambda impl: Path(impl).stem)
def test_right_code_breaks_no_binding_clause(impl: str, warm: LentNursery) -> None:
    found = [
        f"{result.clause.id}: {result.message}" for _, result in alarms(impl, [0], "lm", without="TRAIN", warm=warm)
    ]
    assert not found, "\n".join(found)
