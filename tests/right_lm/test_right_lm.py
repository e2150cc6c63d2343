"""No false alarm in profile lm: right tools and models, differently written, break no binding clause.

What trains a model is left to `tests/right/false_alarms.py --profile lm`: it takes a minute each.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.spec.clauses import clauses_of
from tests.outcomes import Inputs, law
from tests.right.false_alarms import alarms, right_ones
from tests.shares import left_out, share
from tests.tiers import sampled

OTHERS = [Path(impl) for impl in right_ones("lm") if impl != "conformkit.reference"]
"""The reference has a separate test, in tests/suite."""
QUICK = ["arrays", "functions", "nano", "renamed"]
"""Those that take less than a second each: tools in NumPy and torch, under other names, as objects."""


def inputs(impl: Path) -> Inputs:
    """Return what an implementation meets: all of the profile, of clauses about every size its share."""
    met = law(clauses_of("lm"))
    return replace(met, files=(impl,), texts=(*met.texts, share(impl.stem, "lm", impl)))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize("impl", sampled(OTHERS, lambda impl: impl.stem, always=QUICK, files=lambda impl: [impl]))
def test_right_code_breaks_no_binding_clause(impl: Path, warm: LentFactory) -> None:
    without = ("TRAIN", *left_out(impl.stem, "lm", impl))
    found = [f"{result.clause.id}: {result.message}" for _, result in alarms(str(impl), [0], "lm", without, warm=warm)]
    assert not found, "\n".join(found)
