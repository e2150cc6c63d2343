"""No false alarm: right implementations, differently written, break no binding clause. false_alarms.py tries more seeds.

Each is opened once: what its report tells, and half precision, are looked at there, too.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import empty_report
from conformkit.conformance.suite.registry import tests as suite
from conformkit.spec.clauses import clauses_of
from tests.outcomes import Inputs, law
from tests.tiers import sampled

from .false_alarms import JUDGED, ONCE_RED, alarms, is_alarm, judged, right_ones, seeds_of
from tests.shares import left_out, share
from .test_declared import SOME, check_excuses

OTHERS = [Path(impl) for impl in right_ones() if impl != "conformkit.reference"]
"""The reference has a separate test, in tests/suite."""
QUICK = ["llama", "rope32"]
"""A whole model with declared choices, and one component alone."""


POSITIONS_IN_HALF = {"log_softmax"}
"""Its table of positions is computed from frequencies in the model's format: see tests/suite/test_half_precision.py."""
ROUNDED = {Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.NOT_IMPLEMENTED}


def inputs(impl: Path) -> Inputs:
    """Return what an implementation meets: all of core, of clauses about every size its share."""
    met = law(clauses_of("core"))
    return replace(met, files=(impl,), texts=(*met.texts, share(impl.stem, "core", impl)))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize("impl", sampled(OTHERS, lambda impl: impl.stem, always=QUICK, files=lambda impl: [impl]))
def test_a_right_implementation_breaks_no_binding_clause(impl: Path, warm: LentFactory) -> None:
    request = RunRequest(impl=str(impl))
    with opened(request, warm) as (implementation, location):
        results = list(judged(implementation, 0, without=left_out(impl.stem, "core", impl)))
        some = [result for result in results if result.clause.id in SOME]
        report = replace(empty_report(request, implementation, location), results=some)
        more = () if impl.stem in POSITIONS_IN_HALF else range(1, 5)
        half = [Judge(implementation, suite(), seed=seed).alone("NUM-HALF-ERROR") for seed in more]
    found = [f"{result.clause.id}: {result.message}" for result in (*results, *half) if is_alarm(result)]
    assert not found, "\n".join(found)
    assert [result for result in half if result.verdict not in ROUNDED] == []
    check_excuses(report)


@pytest.mark.parametrize("seed", [4, 15])
def test_angles_in_float32_may_be_off_by_their_position(seed: int, warm: LentFactory) -> None:
    """At 512 positions a table of cosines in float32 is off by four times as much as other numbers in float32."""
    impl = Path(__file__).parent / "torch_layers"
    only = tuple(name for name in clauses_of("core") if name != "LM-SIZES")
    assert not list(alarms(str(impl), [seed], without=only, warm=warm))


@pytest.mark.parametrize(("impl", "profile", "name", "seed"), ONCE_RED, ids=lambda value: Path(str(value)).name)
def test_a_draw_that_was_red_once_is_green(impl: str, profile: str, name: str, seed: int, warm: LentFactory) -> None:
    others = tuple(other for other in clauses_of(profile) if other != name)
    assert not list(alarms(impl, [seed], profile, others, warm=warm))


def test_each_day_draws_seeds_of_its_own() -> None:
    today = seeds_of(200, 1)
    assert today == seeds_of(200, 1)
    assert today[0] == 0
    assert len({*today, *seeds_of(200, 2)}) == 399


@pytest.mark.parametrize("profile", JUDGED)
def test_each_profile_with_documents_of_its_own_has_right_code(profile: str) -> None:
    """A profile that selects from others has no folder: the search for false alarms ended with a traceback there."""
    assert {"core", "paths", "finetune"} <= set(JUDGED)
    assert len(right_ones(profile)) > 1
