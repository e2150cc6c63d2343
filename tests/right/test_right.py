"""No false alarm: right implementations, differently written, break no binding clause. false_alarms.py tries more seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.spec.clauses import clauses_of
from tests.tiers import sampled

from .false_alarms import ONCE_RED, alarms, right_ones, seeds_of

OTHERS = [Path(impl) for impl in right_ones() if impl != "conformkit.reference"]
"""The reference has a separate test, in tests/suite."""
QUICK = ["llama", "rope32"]
"""A whole model with declared choices, and one component alone."""


@pytest.mark.parametrize("impl", sampled(OTHERS, lambda impl: impl.stem, always=QUICK, files=lambda impl: [impl]))
def test_a_right_implementation_breaks_no_binding_clause(impl: Path, warm: LentFactory) -> None:
    found = [f"seed {seed}: {result.clause.id}: {result.message}" for seed, result in alarms(str(impl), [0], warm=warm)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", [4, 15])
def test_angles_in_float32_may_be_off_by_their_position(seed: int, warm: LentFactory) -> None:
    """At 512 positions a table of cosines in float32 is off by four times as much as other numbers in float32."""
    impl = Path(__file__).parent / "torch_layers"
    only = tuple(name for name in clauses_of("core") if name != "LM-SIZES")
    assert not list(alarms(str(impl), [seed], without=only, warm=warm))


@pytest.mark.parametrize(("impl", "profile", "name", "seed"), ONCE_RED, ids=lambda value: str(value))
def test_a_draw_that_was_red_once_is_green(impl: str, profile: str, name: str, seed: int, warm: LentFactory) -> None:
    others = tuple(other for other in clauses_of(profile) if other != name)
    assert not list(alarms(impl, [seed], profile, others, warm=warm))


def test_each_day_draws_seeds_of_its_own() -> None:
    today = seeds_of(200, 1)
    assert today == seeds_of(200, 1)
    assert today[0] == 0
    assert len({*today, *seeds_of(200, 2)}) == 399
