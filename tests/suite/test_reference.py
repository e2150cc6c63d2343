"""The reference passes each clause; those that do not apply to it are known, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from types import CodeType
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.outcomes import Outcome
from conformkit.conformance.suite import registry
from conformkit.spec.arrays import Array
from conformkit.spec.clauses import clauses
from tests.suite.not_applicable import NOT_APPLICABLE, NOT_IN_HALF
from tests.suite.without_values import DIFFERENT, WITHOUT_VALUES
from tests.tiers import sampled

TRAINED = ("TRAIN", "COPY")
"""Clauses that train a model: seconds each."""
CORE = [name for name, clause in clauses().items() if clause.profile == "core"]
OTHERS = [name for name, clause in clauses().items() if clause.profile != "core" and clause.prefix not in TRAINED]
QUICK = [*CORE, *OTHERS[::3], "TRAIN-LOSS-DOWN", "COPY-LOSS-DOWN"]
"""Core is judged whole; of the other profiles, one clause in three, and with it the clauses that it needs."""


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names that a function uses, and those that functions in it use."""
    yield from code.co_names
    for inner in code.co_consts:
        yield from names_in(inner) if isinstance(inner, CodeType) else ()


IN_HALF = [
    name
    for name, test in registry.tests().items()
    if "HALF" in name.split("-") or not {"half", "HALF"}.isdisjoint(names_in(test.__code__))
]
"""Clauses whose tests ask for the number format."""


CALLING = [name for name in CORE if name not in NOT_APPLICABLE and not clauses()[name].sizes]
SHAPES = [
    "SDPA-OUT-SHAPE", "SA-SHAPE", "MHA-SHAPE", "FFN-SHAPE", "PE-SHAPE", "BLOCK-SHAPE", "LM-LOGITS-SHAPE",
    "TOKEMB-SHAPE", "ENC-SHAPE", "DEC-SHAPE", "S2S-LOGITS-SHAPE", "BEMB-SHAPE", "BERT-SHAPE", "PATCH-SHAPE",
    "VIT-SHAPE",
]  # fmt: skip


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


@pytest.mark.parametrize("clause", CALLING)
def test_numbers_that_mean_nothing_fail(clause, judge_of, monkeypatch):
    """Would break if a clause no longer compared what it calls for: many mistakes end in an exception before that."""
    judge = judge_of("core", "float64")  # it calls what it binds, and must get true answers
    noise = np.random.default_rng(crc32(clause.encode()))
    calls = answer(monkeypatch, lambda out: noise.standard_normal(out.shape) * 3 + 1)
    result = judge.alone(clause)
    assert (result.verdict is Verdict.FAIL) == (bool(calls) and clause not in WITHOUT_VALUES), result.verdict


@pytest.mark.parametrize("clause", sorted(DIFFERENT))
def test_numbers_that_are_all_the_same_fail(clause, judge_of, monkeypatch):
    """Would break if a clause that asks for a difference looked at none: noise always differs."""
    judge = judge_of("core", "float64")
    answer(monkeypatch, np.zeros_like)
    assert judge.alone(clause).verdict is Verdict.FAIL


@pytest.mark.parametrize("clause", SHAPES)
def test_outputs_without_their_last_column_fail(clause, judge_of, monkeypatch):
    """Would break if a clause about a shape looked at no shape."""
    judge = judge_of(clauses()[clause].profile, "float64")
    calls = answer(monkeypatch, lambda out: out[..., :-1])
    result = judge.alone(clause)
    assert calls, "it called nothing"
    assert result.verdict is Verdict.FAIL


def answer(monkeypatch: pytest.MonkeyPatch, instead: Callable[[Array], Array]) -> list[Instance]:
    """Let each call return another output; what is called is in the list. Nothing is kept for later clauses."""
    calls: list[Instance] = []
    real = Instance.call

    def call(self: Instance, *inputs: Any, **options: Any) -> Outcome:
        calls.append(self)
        outcome = real(self, *inputs, **options)
        return replace(outcome, out=instead(outcome.out))

    monkeypatch.setattr(Instance, "call", call)
    monkeypatch.setattr(Subject, "once", lambda _self, _key, find: find())
    return calls


def check_is_right(result: Result, reason: str | None) -> None:
    if reason is None:
        assert result.verdict is Verdict.PASS, result.message or result.reason
    else:
        assert (result.verdict, result.reason) == (Verdict.NOT_APPLICABLE, reason), result.message
