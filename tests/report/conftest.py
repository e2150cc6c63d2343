from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from conformkit.conformance.results import Report, Result, Verdict
from conformkit.spec.clauses import Clause, Level

MakeResult = Callable[..., Result]
MakeReport = Callable[..., Report]


@pytest.fixture
def result() -> MakeResult:
    def make(verdict: Verdict = Verdict.PASS, clause_id: str = "SDPA-SCALE", **changes: Any) -> Result:
        of_clause = {
            name: changes.pop(name) for name in ("level", "component", "title", "line", "document") if name in changes
        }
        clause = replace(CLAUSE, id=clause_id, **of_clause)
        return Result(clause, verdict, **changes)

    return make


@pytest.fixture
def report() -> MakeReport:
    def make(*results: Result, **changes: Any) -> Report:
        facts: dict[str, Any] = {
            "implementation": "mypkg", "location": "/home/me/mypkg", "framework": "torch 2.13.0", "profile": "core",
            "level": Level.MUST, "seed": 7, "isolation": "process", "device": "cpu", "variant": {"norm": "rmsnorm"},
            "complete": True, "seconds": 2.5,
        }  # fmt: skip
        return Report(results=list(results), **{**facts, **changes})

    return make


CLAUSE = Clause(
    id="SDPA-SCALE", title="scores are divided by the square root of the key width",
    normative="Every score MUST be the dot product divided by √d_k.", why="unscaled, the softmax saturates",
    fix="divide the scores by math.sqrt(k.shape[-1])", level=Level.MUST, evidence=("oracle",), profile="core",
    since="1.0", source="handout §4.2", component="ScaledDotProductAttention", document="attention",
    line=5, applies={}, needs=("SDPA-SHAPE",),
)  # fmt: skip
