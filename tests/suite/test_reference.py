"""The reference passes each clause, or the clause does not apply to it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import clauses
from tests.tiers import sampled

TRAINED = ("TRAIN", "COPY")
"""Clauses that train a model: seconds each."""
CORE = [name for name, clause in clauses().items() if clause.profile == "core"]
OTHERS = [name for name, clause in clauses().items() if clause.profile != "core" and clause.prefix not in TRAINED]
QUICK = [*CORE, *OTHERS[::3], "TRAIN-LOSS-DOWN", "COPY-LOSS-DOWN"]
"""Core is judged whole; of the other profiles, one clause in three, and with it the clauses that it needs."""


@pytest.fixture(scope="module")
def judge_of(warm: LentFactory) -> Iterator[object]:
    """Return a function from a profile to a judge of the reference, which is loaded once."""
    with ExitStack() as stack:

        @cache
        def judge(profile: str) -> Judge:
            request = RunRequest(impl="conformkit.reference", profile=profile)
            implementation, _ = stack.enter_context(opened(request, warm))
            return Judge(implementation, registry.tests(profile))

        yield judge


@pytest.mark.parametrize(
    "clause", sampled(clauses(), always=QUICK, files=lambda name: [f"spec/{clauses()[name].document}.md"])
)
def test_the_reference_passes(clause, judge_of):
    result = judge_of(clauses()[clause].profile).result(clause)
    assert result.verdict in {Verdict.PASS, Verdict.NOT_APPLICABLE}, result.message or result.reason
