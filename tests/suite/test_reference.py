"""The reference passes each clause; those that do not apply to it are known, and why."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import clauses
from tests.suite.not_applicable import NOT_APPLICABLE, NOT_IN_HALF
from tests.tiers import sampled

TRAINED = ("TRAIN", "COPY")
"""Clauses that train a model: seconds each."""
CORE = [name for name, clause in clauses().items() if clause.profile == "core"]
OTHERS = [name for name, clause in clauses().items() if clause.profile != "core" and clause.prefix not in TRAINED]
QUICK = [*CORE, *OTHERS[::3], "TRAIN-LOSS-DOWN", "COPY-LOSS-DOWN"]
"""Core is judged whole; of the other profiles, one clause in three, and with it the clauses that it needs."""


SPEAKING = re.compile(r"\.half\b|\bHALF\b")
IN_HALF = [name for name, test in registry.tests().items() if SPEAKING.search(inspect.getsource(test))]
"""Clauses whose tests ask for the number format."""


@pytest.fixture(scope="module")
def judge_of(warm: LentFactory) -> Iterator[object]:
    """Return a function from a profile and a number format to a judge of the reference, which is loaded once."""
    with ExitStack() as stack:

        @cache
        def judge(profile: str, dtype: str = "") -> Judge:
            request = RunRequest(impl="conformkit.reference", profile=profile, dtype=dtype)
            implementation, _ = stack.enter_context(opened(request, warm))
            return Judge(implementation, registry.tests(profile))

        yield judge


@pytest.mark.parametrize(
    "clause", sampled(clauses(), always=QUICK, files=lambda name: [f"spec/{clauses()[name].document}.md"])
)
def test_the_reference_passes(clause, judge_of):
    """Would break too if a clause no longer applied to it by mistake: such a clause says nothing."""
    result = judge_of(clauses()[clause].profile).result(clause)
    check_is_right(result, NOT_APPLICABLE.get(clause))


@pytest.mark.parametrize("clause", sampled(IN_HALF, always=["NUM-SOFTMAX-SHIFT", "BLOCK-CAUSAL", "SDPA-GRAD"]))
def test_the_reference_passes_in_half_precision(clause, judge_of):
    """Would break if what a clause does in that format alone were wrong."""
    result = judge_of(clauses()[clause].profile, "bfloat16").result(clause)
    check_is_right(result, {**NOT_APPLICABLE, **NOT_IN_HALF}.get(clause))


def check_is_right(result: Result, reason: str | None) -> None:
    if reason is None:
        assert result.verdict is Verdict.PASS, result.message or result.reason
    else:
        assert (result.verdict, result.reason) == (Verdict.NOT_APPLICABLE, reason), result.message
